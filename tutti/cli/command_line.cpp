#include "tutti/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/cli/flags/arguments.h"
#include "tutti/cli/flags/help.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/flags/version.h"
#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {

int run_command_line(const std::vector<std::string>& words) {
  if (!words.empty() && (words.front() == "-V" || words.front() == "--version")) {
    const bool json = std::ranges::find(words, "--json") != words.end();
    fmt::print("{}\n", json ? version_json() : version_text());
    return 0;
  }
  const std::vector<Verb> verbs = all_verbs();
  const Request request = find_verb(verbs, words);
  if (asks_for_help(words)) {
    fmt::print("{}", request.verb ? help_text(*request.verb, request.command, help_width())
                                  : overview(verbs, help_width()));
    return 0;
  }
  if (!request.verb && !words.empty())
    throw ConfigError(fmt::format(
        "the flag '{}' stands before no verb: write tutti VERB [FLAGS]. See tutti --help.",
        words.front()));
  if (!request.verb) {
    fmt::print("{}", overview(verbs, help_width()));
    return static_cast<int>(ExitCode::usage);
  }
  if (!request.verb->run) {
    std::string names;
    for (const Verb& verb : request.verb->verbs) names += (names.empty() ? "" : ", ") + verb.name;
    throw ConfigError(fmt::format("{} needs one of its verbs: {}. See {} --help.", request.command,
                                  names, request.command));
  }
  parse_arguments(request);
  if (const Flag* json = find_flag(*request.verb, "--json"))
    if (bool* const* given = std::get_if<bool*>(&json->bind); given && **given)
      keep_output_for_json();
  return request.verb->run();
}

}  // namespace tutti::cli
