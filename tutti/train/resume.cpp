#include "tutti/train/resume.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tutti/base/log.h"

namespace tutti {
namespace {

// What besides kernels decides the bits, kept among the choices of a checkpoint.
constexpr const char* kSamplesChoice = "samples a replica";
constexpr const char* kThreadsChoice = "threads a rank";

void check_agreement(const Checkpoint& checkpoint, const RunConfig& config, int64_t replicas,
                     int64_t local_batch) {
  const auto agree = [&](const char* key, const std::string& there, const std::string& here) {
    if (there != here)
      throw ConfigError(
          fmt::format("checkpoint '{}' was written with {} = {}, this run has {}: the results "
                      "would not be the same",
                      checkpoint.path.string(), key, there, here));
  };
  agree("run.replicas", std::to_string(checkpoint.info.replicas), std::to_string(replicas));
  agree("run.seed", std::to_string(checkpoint.info.seed),
        std::to_string(static_cast<uint64_t>(config.run.seed)));
  agree("run.precision", checkpoint.info.precision, std::string(to_string(config.run.precision)));
  Choices choices = Choices::parse(checkpoint.info.plan_choices);
  if (const auto samples = choices.find(kSamplesChoice); !samples.empty())
    agree("samples a replica", std::string(samples), std::to_string(local_batch));
  if (const auto threads = choices.find(kThreadsChoice);
      !threads.empty() && threads != std::to_string(config.run.threads))
    log::warn(
        "checkpoint '{}' was written with run.threads = {}, this run has {}: sums are taken in "
        "another order, so the last bits will differ",
        checkpoint.path.string(), threads, config.run.threads);
}

}  // namespace

std::filesystem::path checkpoint_directory(const RunConfig& config) {
  return config.checkpoint.dir.empty()
             ? std::filesystem::path(config.run.output_dir) / "checkpoints"
             : std::filesystem::path(config.checkpoint.dir);
}

std::filesystem::path checkpoint_at(const std::filesystem::path& path, const char* key) {
  if (std::filesystem::exists(path / "manifest.json")) return path;
  if (const auto found = find_latest_valid(path)) return *found;
  throw ConfigError(fmt::format("{}: no valid checkpoint in '{}'", key, path.string()));
}

std::optional<Checkpoint> find_resume(const RunConfig& config, int64_t replicas,
                                      int64_t local_batch) {
  if (config.checkpoint.resume.empty()) return std::nullopt;
  std::filesystem::path path = config.checkpoint.resume;
  if (config.checkpoint.resume == "latest") {
    const auto found = find_latest_valid(checkpoint_directory(config));
    if (!found) {
      log::info("no checkpoint in '{}': starting anew", checkpoint_directory(config).string());
      return std::nullopt;
    }
    path = *found;
  } else {
    path = checkpoint_at(path, "--resume");
  }
  Checkpoint checkpoint = read_checkpoint(path);
  check_agreement(checkpoint, config, replicas, local_batch);
  log::info("resuming from '{}' at step {}", path.string(), checkpoint.info.step);
  return checkpoint;
}

std::string choices_to_keep(const Choices& choices, int64_t local_batch, int64_t threads) {
  Choices kept = choices;
  kept.record(kSamplesChoice, std::to_string(local_batch));
  kept.record(kThreadsChoice, std::to_string(threads));
  return kept.to_string();
}

std::vector<NamedTensor> gather_statistics(const Weights& weights, const ReplicaMap& replicas,
                                           comm::Communicator& communicator) {
  const size_t bytes = weights.variables().statistic_bytes;
  const auto most = static_cast<size_t>(replicas.most_per_rank());
  std::vector<std::byte> mine(most * bytes),
      all(mine.size() * static_cast<size_t>(communicator.size()));
  for (int r = 0; r < replicas.local_count(); ++r)
    std::memcpy(mine.data() + static_cast<size_t>(r) * bytes, weights.statistics(r), bytes);
  communicator.allgather(mine, all);
  std::vector<NamedTensor> tensors;
  for (size_t rank = 0; rank + 1 < replicas.first().size(); ++rank)
    for (int replica = replicas.first()[rank]; replica < replicas.first()[rank + 1]; ++replica) {
      const size_t row = rank * most + static_cast<size_t>(replica - replicas.first()[rank]);
      std::ranges::move(weights.export_statistics(all.data() + row * bytes, replica),
                        std::back_inserter(tensors));
    }
  return tensors;
}

void restore(const Checkpoint& checkpoint, const ReplicaMap& replicas, Weights& weights) {
  weights.import_model(checkpoint.weights);
  weights.import_state(checkpoint.state);
  for (int r = 0; r < replicas.local_count(); ++r)
    weights.import_statistics(checkpoint.state, r, replicas.replica(r));
}

}  // namespace tutti
