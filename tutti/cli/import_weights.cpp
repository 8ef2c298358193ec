#include "tutti/cli/import_weights.h"

#include "tutti/base/error.h"
#include "tutti/base/shell.h"

namespace tutti {

PlanOptions plan_options_for(const RunConfig& config, const FoundWeights& found) {
  PlanOptions options;
  options.layout = to_string(config.plan.layout);
  options.measure = config.plan.measure;
  options.choices = Choices::parse(found.plan_choices);
  options.choices.make_advice_of_training();
  return options;
}

void take_task(const FoundWeights& found, RunConfig& config) {
  const auto at = found.settings.find("model.task");
  if (config.model.task != ModelTask::automatic || at == found.settings.end()) return;
  // The text is TOML: a word in quotes.
  find_config_key("model.task")->set(config, at->second.substr(1, at->second.size() - 2));
}

void import_weights(const std::string& verb, const std::filesystem::path& path,
                    const std::string& config, const SafetensorsFile& file, Weights& weights) {
  try {
    weights.import_model(file);
  } catch (const ConfigError& error) {
    const std::string own = configuration_near(path);
    if (own.empty() || own == config) throw;
    throw ConfigError(
        fmt::format("{}; the run of these weights had the configuration {}: tutti {} {} --weights "
                    "{}",
                    error.what(), own, verb, shell_word(own), shell_word(path.string())));
  }
}

}  // namespace tutti
