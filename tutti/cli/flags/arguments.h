#pragma once
// The parser of the command line: sets the flags of one verb from words.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// The verb and words that a command line names.
struct Request {
  const Verb* verb = nullptr;                ///< the innermost verb named, or null
  std::string command;                       ///< "tutti data list"
  std::vector<std::string> words;            ///< after the verb
  const std::vector<Verb>* verbs = nullptr;  ///< all verbs, to name the verb that has a flag
};

/// Finds the verb. Flags before it count as if they came after it: `tutti -q train x`. Throws
/// ConfigError for an unknown verb, with a suggestion.
Request find_verb(const std::vector<Verb>& verbs, const std::vector<std::string>& words);

/// Returns whether the words ask for help: -h or --help before a lone "--".
bool asks_for_help(const std::vector<std::string>& words);

/// Stores every value in its flag's variable. Flags may stand anywhere: --name VALUE, --name=VALUE,
/// -n VALUE, -nVALUE, switches together (-qv). In long names `_` is the same as `-`. Where the verb
/// has --set, --section.key VALUE is the same as --set section.key=VALUE. After a lone "--" nothing
/// is a flag. A flag with an optional value takes the next word, unless that begins with a dash or
/// the verb's own arguments need it: in `train --resume run.toml` it is the file. Flags that are
/// absent read their environment variable. Throws ConfigError.
void parse_arguments(const Request& request);

}  // namespace tutti::cli
