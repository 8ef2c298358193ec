#pragma once
// The verbs and flags of the program as data. One table (verbs.h) describes them; the parser
// (arguments.h), the help texts, the manual page and the shells' completions all read it, so a new
// flag is one row of its verb.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tutti::cli {

/// A switch that clears its variable: --no-measure.
struct Clears {
  bool* variable;
};

/// A switch that counts how often it was given: -vv.
struct Counts {
  int* variable;
};

/// The variable that a flag sets. A list of numbers is written with commas; a list of strings grows
/// by one with each use of the flag, or with each word where it is the last argument. A function
/// receives the text and may throw ConfigError.
using Binding = std::variant<std::monostate, bool*, Clears, Counts, int*, int64_t*, uint64_t*,
                             double*, std::string*, std::vector<std::string>*, std::vector<int>*,
                             std::vector<int64_t>*, std::function<void(const std::string&)>>;

/// The kind of thing that a value names, for completion.
enum class Names {
  nothing,
  file,
  folder,
  model,
  dataset,
  generated,  ///< a data set that can be generated
  key,
  setting,
  verb
};  ///< setting: KEY=VALUE

/// One flag, or one positional argument. A flag with a number is written in one row of its first
/// members: {"--ranks", "N", "Processes that compute together", &ranks, 1, 1 << 20}.
struct Flag {
  std::string names;       ///< "--ranks", "-c,--check"; for an argument "FILE"
  std::string value = {};  ///< placeholder of the value in help: "N"; a switch has none
  std::string help = {};   ///< a sentence without its full stop
  Binding bind = {};       ///< its value before parsing is the default that help shows
  std::optional<double> least = {}, greatest = {};  ///< inclusive; for each number of a list
  std::vector<std::string> choices = {};            ///< the allowed words; none: any
  Names kind = Names::nothing;
  std::string group = {};     ///< heading in help; none: "Flags"
  std::string variable = {};  ///< the environment variable that is read when the flag is absent
  std::string key = {};       ///< the configuration key that it sets
  std::optional<std::string> alone = {};  ///< the value that it has if it is left out
  std::string required = {};  ///< not empty: the flag is required; the message when it is missing
  std::vector<std::string> excludes = {};  ///< flags that contradict it: "--chunk"
  /// Values of the verb's first argument that the flag applies to; none: all do.
  std::vector<std::string> only_for = {};
};

/// A flag of another program that people may try here, and its replacement.
struct ForeignFlag {
  std::string name;  ///< "-g"
  std::string hint;  ///< a sentence with its full stop
};

struct Example {
  std::string command;  ///< "tutti train run.toml --ranks 2"
  std::string meaning;  ///< a sentence without its full stop
};

/// A verb, or a group of verbs such as `data`, which has `verbs` and nothing to run itself.
struct Verb {
  std::string name;                  ///< "train"
  std::string summary;               ///< one line without its full stop
  std::string task = {};             ///< heading in `tutti help`, for outermost verbs
  std::string text = {};             ///< more text, in paragraphs
  std::vector<Flag> arguments = {};  ///< in their order; required ones first
  std::vector<Flag> flags = {};
  std::vector<ForeignFlag> foreign = {};
  std::vector<Example> examples = {};
  std::vector<std::string> see_also = {};  ///< "tutti help plan", "docs/record.md"
  std::vector<Verb> verbs = {};
  std::function<int()> run = {};  ///< called after parsing; returns the exit code (base/error.h)
};

/// Returns "--check" for "-c,--check": the last of its names. Returns an argument's name.
std::string long_name(const Flag& flag);
/// Returns all names, each with its dashes.
std::vector<std::string> names_of(const Flag& flag);
/// Returns whether the flag takes a value, even an optional one.
bool takes_value(const Flag& flag);
/// Returns whether it may be given several times.
bool repeatable(const Flag& flag);
/// Returns the flags for these values of the verb's first argument alone.
std::vector<Flag> only_for(const std::vector<std::string>& values, std::vector<Flag> flags);
/// Joins two lists.
std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second);
/// Returns null when the verb has no flag of this name ("-c" or "--check").
const Flag* find_flag(const Verb& verb, std::string_view name);

/// Returns its variable as text; empty for 0, false, nothing and functions.
std::string default_text(const Flag& flag);
/// Returns the words for completion: its choices, or the names of its kind (none for files,
/// folders, verbs).
std::vector<std::string> known_values(const Flag& flag);

/// Sets the variable. `who` begins an error's message: "--ranks", "TUTTI_RANKS". Throws
/// ConfigError.
void store(const Flag& flag, const std::string& text, const std::string& who);

}  // namespace tutti::cli
