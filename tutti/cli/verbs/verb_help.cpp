// tutti help: prints the help of a verb, the manual page, the completion of a shell.

#include <fmt/format.h>

#include <memory>

#include "tutti/base/error.h"
#include "tutti/cli/flags/arguments.h"
#include "tutti/cli/flags/completion.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/help.h"
#include "tutti/cli/flags/man_page.h"
#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {
namespace {

struct HelpVerb {
  std::vector<std::string> words;
  bool man = false;
  std::string shell;
};

int run_help(const HelpVerb& verb) {
  const std::vector<Verb> verbs = all_verbs();
  if (verb.man) {
    fmt::print("{}", man_page(verbs));
  } else if (!verb.shell.empty()) {
    fmt::print("{}", completion(verbs, verb.shell));
  } else if (verb.words.empty()) {
    fmt::print("{}", overview(verbs, help_width()));
  } else {
    const Request request = find_verb(verbs, verb.words);
    if (!request.words.empty())
      throw ConfigError(fmt::format("{} has no verb '{}'. See {} --help.", request.command,
                                    request.words.front(), request.command));
    fmt::print("{}", help_text(*request.verb, request.command, help_width()));
  }
  return 0;
}

}  // namespace

Verb help_verb() {
  auto state = std::make_shared<HelpVerb>();  // shared: std::function must be copyable
  return {.name = "help",
          .summary = "Explain a verb, or print the manual page or a shell's completion",
          .arguments = {{.names = "VERB",
                         .help = "The verb to explain, for example train or data list",
                         .bind = &state->words,
                         .kind = Names::verb}},
          .flags = {switch_flag("--man", "Print the manual page tutti(1)", &state->man),
                    choice_flag("--completion", "Print the completion of a shell", &state->shell,
                                {"bash", "zsh", "fish"})},
          .examples =
              {{"tutti help train", "Explain how to train a run"},
               {"tutti help bench comm", "Explain one verb of a group"},
               {"tutti help --completion bash > ~/.local/share/bash-completion/completions/tutti",
                "Install completion for yourself, where it is not installed already"}},
          .see_also = {"docs/cli.md"},
          .run = [state] { return run_help(*state); }};
}

}  // namespace tutti::cli
