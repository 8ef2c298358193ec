#include "tutti/cli/infer/import_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/shell.h"
#include "tutti/cli/job/launch.h"
#include "tutti/config/run_settings.h"
#include "tutti/models/registry.h"
#include "tutti/train/network/table_files.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

/// Returns the word of a setting, whose text is TOML: a word in quotes.
std::string word_of(const config::RunSettings& settings, const char* key) {
  const auto at = settings.find(key);
  return at == settings.end() || at->second.size() < 2
             ? ""
             : at->second.substr(1, at->second.size() - 2);
}

/// Returns the threads of a rank; 0: not known.
int64_t threads_of_run(const train::FoundWeights& found) {
  const auto at = found.settings.find("run.threads");
  return at == found.settings.end() ? 0 : std::atoll(at->second.c_str());
}

/// A network as its settings name it.
struct NamedNetwork {
  std::string name, task;  ///< task empty: the fields decide
  std::string layers;      ///< model.layer

  explicit NamedNetwork(const config::RunSettings& settings)
      : name(word_of(settings, "model.name")), task(word_of(settings, "model.task")) {
    if (const auto at = settings.find("model.layer"); at != settings.end()) layers = at->second;
    if (task != to_string(config::ModelTask::automatic)) return;
    task.clear();
    const auto known = std::ranges::find(models::models(), name, &models::ModelInfo::name);
    if (known != models::models().end() && !known->takes_layers) task = name_of(known->task);
  }
  bool is_like(const NamedNetwork& other) const {
    return name == other.name && layers == other.layers &&
           (task.empty() || other.task.empty() || task == other.task);
  }
  std::string to_text() const {
    return fmt::format("'{}'{}", name, task.empty() ? "" : fmt::format(" (task {})", task));
  }
};

/// Describes both networks; empty where they are the same, or where the weights' network is
/// unknown.
std::string both_networks(const GivenNames& given, const train::FoundWeights& found,
                          const config::RunConfig& config) {
  const NamedNetwork theirs(found.settings), asked(config::run_settings(config));
  if (theirs.name.empty() || theirs.is_like(asked)) return "";
  return fmt::format("the weights of {} are of the network {}, {} has {}{}", given.weights.string(),
                     theirs.to_text(), given.config,
                     theirs.to_text() == asked.to_text() ? "other layers of the name " : "",
                     asked.to_text());
}

/// Returns the command that takes the weights with their run's configuration; empty where that is
/// not nearby, or is the one that was given.
std::string config_command(const GivenNames& given) {
  const std::string own = train::configuration_near(given.weights);
  if (own.empty() || own == given.config) return "";
  return fmt::format(
      "; the run of these weights had the configuration {}: tutti {} {} --weights {}", own,
      given.verb, shell_word(own), shell_word(given.weights.string()));
}

}  // namespace

plan::PlanOptions plan_options_for(const config::RunConfig& config,
                                   const train::FoundWeights& found) {
  const split::SplitSettings split = train::split_settings(config);
  plan::PlanOptions options;
  options.threads = split.threads;
  options.tile_bytes = split.tile_bytes;
  options.layout = to_string(config.plan.layout);
  options.measure = train::measures_kernels(config);
  options.most_error = config.plan.bf16_error;
  options.choices =
      plan::Choices::parse(train::choices_of_device(found.plan_choices, found.settings, config));
  options.choices.make_advice_of_training();
  return options;
}

void take_threads(const train::FoundWeights& found, int ranks, config::RunConfig& config) {
  if (config.run.threads > 0 || read_surroundings().omp_num_threads > 0) return;
  if (threads_of_run(found) * ranks <= cores_for_ranks(device::read_topology()))
    config.run.threads = threads_of_run(found);
}

std::string threads_line(const train::FoundWeights& found, int64_t threads) {
  const int64_t trained = threads_of_run(found);
  if (trained == 0) return "";
  if (threads == trained)
    return fmt::format("{} thread(s) a rank, as the run of these weights had: the same bits",
                       threads);
  return fmt::format(
      "{} thread(s) a rank, where the run of these weights had {}: the last bits of predictions "
      "may differ; --threads {} takes as many",
      threads, trained, trained);
}

void take_task(const train::FoundWeights& found, config::RunConfig& config) {
  const auto at = found.settings.find("model.task");
  if (config.model.task != config::ModelTask::automatic || at == found.settings.end()) return;
  config::find_config_key("model.task")->set(config, word_of(found.settings, "model.task"));
}

int naming_networks(const GivenNames& given, const train::FoundWeights& found,
                    const config::RunConfig& config, const std::function<int()>& work) {
  const std::string both = both_networks(given, found, config);  // `work` may change the task
  try {
    return work();
  } catch (const ConfigError& error) {
    if (both.empty()) throw;
    const std::string command = config_command(given), message = error.what();
    throw ConfigError(
        fmt::format("{}: {}{}", both, message, message.ends_with(command) ? "" : command));
  }
}

void import_weights(const GivenNames& given, const train::FoundWeights& found,
                    train::Weights& weights) {
  try {
    weights.import_model(found.file);
    train::read_tables(found.file, found.checkpoint, weights);
  } catch (const ConfigError& error) {
    const std::string command = config_command(given);
    throw ConfigError(fmt::format(
        "{}: {}{}", given.weights.string(), error.what(),
        command.empty() ? "; give the configuration that they were trained with" : command));
  }
}

}  // namespace tutti::cli
