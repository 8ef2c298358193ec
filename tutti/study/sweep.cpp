#include "tutti/study/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tutti/base/error.h"

namespace tutti::study {
namespace {

constexpr int64_t kDefaultGlobalBatch = 128;  // as [batch] documents when it is empty

/// Returns the batch per replica at `ranks`, given the values that the base configuration fixes.
int64_t local_batch(const StudyFlags& flags, const Size& size, const Size& base) {
  const int64_t replicas = flags.replicas ? flags.replicas : size.groups(),
                micro_batches = flags.accumulate;
  const std::string times =
      micro_batches > 1 ? fmt::format(" x batch.accumulate = {}", micro_batches) : "";
  if (flags.mode == Mode::weak) {
    if (flags.local_batch) return flags.local_batch;
    const int64_t global = flags.global_batch ? flags.global_batch : kDefaultGlobalBatch;
    if (global % (base.groups() * micro_batches))
      throw ConfigError(
          fmt::format("weak scaling needs a local batch: batch.global = {} is not divisible by the "
                      "smallest rank count {}{}; set batch.local",
                      global, base.text(), times));
    return global / (base.groups() * micro_batches);
  }
  const int64_t base_replicas = flags.replicas ? flags.replicas : base.groups();
  const int64_t global = flags.global_batch  ? flags.global_batch
                         : flags.local_batch ? flags.local_batch * base_replicas * micro_batches
                                             : kDefaultGlobalBatch;
  if (global % (replicas * micro_batches))
    throw ConfigError(fmt::format(
        "strong scaling: the global batch {} is not divisible by {} {}{}; change "
        "batch.global or --ranks",
        global, replicas, flags.replicas || size.parts() > 1 ? "replicas" : "ranks", times));
  return global / (replicas * micro_batches);
}

void check(const StudyFlags& flags) {
  if (flags.config.empty())
    throw ConfigError("tutti study needs a configuration: tutti study CONFIG --ranks 1,2,4");
  if (flags.ranks.empty())
    throw ConfigError("--ranks needs at least one rank count, for example --ranks 1,2,4");
  if (flags.repeats < 1)
    throw ConfigError(fmt::format("--repeats {} must be 1 or more", flags.repeats));
  std::set<Size> seen;
  for (const Size& size : flags.ranks) {
    if (size.ranks < 1)
      throw ConfigError(fmt::format("--ranks: {} is not a number of ranks", size.ranks));
    if (size.ranks % size.parts() != 0)
      throw ConfigError(fmt::format(
          "--ranks: {} are no groups of {} ranks that share each sample (parallel.spatial)",
          size.text(), size.parts()));
    if (!seen.insert(size).second)
      throw ConfigError(fmt::format("--ranks names {} twice", size.text()));
    if (flags.replicas && flags.replicas < size.groups())
      throw ConfigError(fmt::format("run.replicas = {} is less than the {} ranks of this study",
                                    flags.replicas, size.groups()));
    if (flags.replicas && size.parts() > 1 && flags.replicas != size.groups())
      throw ConfigError(
          fmt::format("--ranks {}: {} groups of ranks share samples, and run.replicas = {}: there "
                      "each replica needs ranks of its own; leave run.replicas out",
                      size.text(), size.groups(), flags.replicas));
  }
  if (flags.replicas && flags.mode == Mode::weak)
    throw ConfigError(
        fmt::format("weak scaling gives every rank one replica, but run.replicas = {} fixes their "
                    "number: remove it, or use --mode strong",
                    flags.replicas));
}

}  // namespace

Mode parse_mode(std::string_view text) {
  if (text == "weak") return Mode::weak;
  if (text == "strong") return Mode::strong;
  throw ConfigError(fmt::format("--mode '{}' is not one of weak, strong", text));
}

std::vector<PlannedRun> plan_runs(const StudyFlags& flags) {
  check(flags);
  std::vector<Size> sizes = flags.ranks;
  std::ranges::sort(sizes);
  std::vector<PlannedRun> runs;
  for (int repeat = 1; repeat <= flags.repeats; ++repeat)
    for (const Size& size : sizes) runs.push_back(plan_another(flags, size, repeat));
  return runs;
}

PlannedRun plan_another(const StudyFlags& flags, const Size& size, int repeat) {
  const auto [least, most] = std::ranges::minmax(flags.ranks);
  const bool replay = flags.replay_ranks > 0;
  const int ranks = replay ? flags.replay_ranks : size.ranks;
  const int threads = flags.threads_per_rank
                          ? flags.threads_per_rank
                          : std::max(1, flags.cores / (replay ? ranks : most.ranks));
  PlannedRun run;
  run.ranks = size.ranks;
  run.spatial = size.spatial;
  run.repeat = repeat;
  run.seed = flags.seed + static_cast<uint64_t>(repeat - 1);
  run.local_batch = local_batch(flags, size, least);
  run.directory = run_path(flags.output_dir, size, repeat);
  run.command = {flags.program, replay ? "replay" : "train", flags.config,
                 "--ranks",     fmt::to_string(ranks),       "--output-dir",
                 run.directory};
  if (flags.oversubscribe) run.command.emplace_back("--oversubscribe");
  run.sets = flags.sets;
  // These follow the user's own settings, so that the values that the study varies or must hold
  // fixed win.
  run.sets.push_back(fmt::format("run.seed={}", run.seed));
  run.sets.push_back(fmt::format("run.threads={}", threads));
  run.sets.push_back(fmt::format("batch.local={}", run.local_batch));
  run.sets.push_back("batch.global=0");
  if (replay) run.sets.push_back(fmt::format("run.replicas={}", size.ranks));
  if (!size.spatial.empty())
    run.sets.push_back(fmt::format("parallel.spatial={}", fmt::join(size.spatial, ",")));
  for (const std::string& set : run.sets) {
    run.command.push_back("--set");
    run.command.push_back(set);
  }
  return run;
}

}  // namespace tutti::study
