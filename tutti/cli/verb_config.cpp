// tutti config: the resolved configuration, its documentation, its schema.

#include <fmt/format.h>

#include <memory>

#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/config_text.h"
#include "tutti/cli/verbs.h"

namespace tutti {
namespace {

struct ConfigVerb {
  ConfigFlags flags;
  bool doc = false, schema = false;
};

int run_config(const ConfigVerb& verb) {
  if (verb.doc || verb.schema) {
    fmt::print("{}", verb.doc ? configuration_markdown() : configuration_schema());
    return 0;
  }
  const ResolvedConfig resolved = verb.flags.read();
  log::configure(resolved.config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  fmt::print("{}", resolved_toml(resolved));
  return 0;
}

}  // namespace

RunVerb add_config(CLI::App& verb) {
  auto state = std::make_shared<ConfigVerb>();  // shared: std::function must be copyable
  state->flags.add_to(verb, false);
  verb.add_flag("--doc", state->doc, "Print the documentation of every key (Markdown)");
  verb.add_flag("--schema", state->schema, "Print a JSON schema for editors");
  return [state] { return run_config(*state); };
}

}  // namespace tutti
