// tutti config: the resolved configuration, its documentation, its schema.

#include <fmt/format.h>

#include <memory>

#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/config/config_text.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {
namespace {

struct ConfigVerb {
  ConfigFlags flags;
  bool doc = false, schema = false, json = false;
};

int run_config(const ConfigVerb& verb) {
  if (verb.doc || verb.schema) {
    print_output(verb.doc ? configuration_markdown() : configuration_schema());
    return 0;
  }
  const ResolvedConfig resolved = verb.flags.look();
  log::configure(resolved.config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings_of_training()) log::warn("{}", warning);
  if (verb.json)
    print_output(resolved_json(resolved));
  else
    fmt::print("{}", resolved_toml(resolved));
  return 0;
}

}  // namespace

Verb config_verb() {
  auto state = std::make_shared<ConfigVerb>();  // shared: std::function must be copyable
  return {.name = "config",
          .summary = "Show the resolved configuration, its documentation or its schema",
          .text =
              "Prints every key with its value and where that came from: the default, a file, the "
              "environment or a flag. Takes those flags of train that stand for a key.",
          .arguments = {state->flags.file_argument("config", false)},
          .flags = joined(
              {switch_flag("--doc", "Print the documentation of every key (Markdown)", &state->doc),
               switch_flag("--schema", "Print a JSON schema for editors", &state->schema),
               json_flag(state->json)},
              state->flags.flags_of_training()),
          .foreign = {{"--ranks", "it stands for no key; leave it out, or give it to tutti plan."}},
          .examples = {{"tutti config", "Every key with its default"},
                       {"tutti config run.toml --lr 0.1 --resume",
                        "What train would use, and where each value came from"},
                       {"tutti config --doc", "Every key, its meaning and limits"}},
          .see_also = {"docs/configuration.md"},
          .run = [state] { return run_config(*state); }};
}

}  // namespace tutti::cli
