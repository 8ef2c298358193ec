// tutti eval: the quality of given weights on a data set.

#include <fmt/format.h>

#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/log.h"
#include "tutti/cli/config_flags.h"
#include "tutti/cli/job.h"
#include "tutti/cli/launch.h"
#include "tutti/cli/verbs.h"
#include "tutti/data/format/catalog.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/train/checkpoint.h"
#include "tutti/train/evaluator.h"
#include "tutti/train/network.h"
#include "tutti/train/npy.h"
#include "tutti/train/safetensors.h"
#include "tutti/train/settings.h"
#include "tutti/train/weights.h"

namespace tutti {
namespace {

struct EvalVerb {
  ConfigFlags flags;
  std::string weights, logits, split = "test";
  int64_t samples = 0;
};

/// Weights from a .safetensors file, a checkpoint, or a folder of checkpoints (its newest valid
/// one).
std::vector<NamedTensor> weights_at(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return read_weights(path);
  if (std::filesystem::exists(std::filesystem::path(path) / "manifest.json"))
    return read_checkpoint(path).weights;
  const auto newest = find_latest_valid(path);
  if (!newest) throw ConfigError(fmt::format("--weights: '{}' holds no valid checkpoint", path));
  log::info("weights of '{}'", newest->string());
  return read_checkpoint(*newest).weights;
}

int run_eval(const EvalVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  RunConfig& config = resolved.config;
  log::configure(config.run.log_level, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  config.run.threads = choose_threads(static_cast<int>(config.run.threads),
                                      read_surroundings().omp_num_threads, read_topology(), 1);

  const auto dataset = open_configured(config, verb.split);
  const CpuBackend backend;
  const auto network =
      compile_evaluation(model_spec(config, *dataset, batch_sizes(config.batch, 1).local),
                         static_cast<int>(config.run.threads), nullptr, backend);
  Weights weights(network->plan.variables, 1);
  weights.import_model(weights_at(verb.weights));

  const data::ChannelStatistics& own = data::known_dataset(config.data.dataset).normalization;
  const data::Augment augment(augment_spec(config, own), dataset->shape(),
                              network->plan.desc(network->images));
  Evaluator evaluator(network->plan, network->images, network->logits, backend, *dataset, augment);
  evaluator.bind(weights.parameters(), weights.statistics(0));
  const int64_t samples =
      verb.samples > 0 ? std::min(verb.samples, dataset->size()) : dataset->size();
  std::vector<float> logits;
  const ClassifierQuality quality = evaluator.run(
      {0, samples}, static_cast<int>(config.data.readers), verb.logits.empty() ? nullptr : &logits);
  if (!verb.logits.empty())
    write_npy(verb.logits, {samples, static_cast<int64_t>(logits.size()) / samples}, logits);
  fmt::print("{} {}: {} of {} correct, accuracy {:.2f} %, loss {:.4f}\n", config.data.dataset,
             verb.split, quality.correct, quality.samples, quality.accuracy() * 100,
             quality.loss());
  return config.run.target > 0 && quality.accuracy() < config.run.target
             ? static_cast<int>(ExitCode::target_missed)
             : 0;
}

}  // namespace

RunVerb add_eval(CLI::App& verb) {
  auto state = std::make_shared<EvalVerb>();  // shared: std::function must be copyable
  state->flags.add_to(verb, true);
  verb.add_option("--weights", state->weights,
                  "A .safetensors file, a checkpoint, or a folder of checkpoints")
      ->type_name("PATH")
      ->required();
  verb.add_option("--logits", state->logits,
                  "Write the logits of all samples, float32 [samples, classes]")
      ->type_name("FILE.npy");
  verb.add_option("--split", state->split, "test or train")
      ->check(CLI::IsMember({"test", "train"}))
      ->capture_default_str();
  verb.add_option("--samples", state->samples, "Only the first N samples; 0: all")->type_name("N");
  return [state] { return run_eval(*state); };
}

}  // namespace tutti
