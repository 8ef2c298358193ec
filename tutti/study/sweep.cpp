#include "tutti/study/sweep.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <set>

#include "tutti/base/error.h"

namespace tutti::study {
namespace {

int cores_of_this_process() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

constexpr int64_t kDefaultGlobalBatch = 128;  // as [batch] documents when it is empty

/// The batch per replica at `ranks`, given what the base configuration fixes.
int64_t local_batch(const StudyFlags& flags, int ranks, int base_ranks) {
  const int64_t replicas = flags.replicas ? flags.replicas : ranks, turns = flags.accumulate;
  const std::string times = turns > 1 ? fmt::format(" x batch.accumulate = {}", turns) : "";
  if (flags.mode == Mode::weak) {
    if (flags.local_batch) return flags.local_batch;
    const int64_t global = flags.global_batch ? flags.global_batch : kDefaultGlobalBatch;
    if (global % (base_ranks * turns))
      throw ConfigError(
          fmt::format("weak scaling needs a local batch: batch.global = {} is not divisible by the "
                      "smallest rank "
                      "count {}{}; set batch.local",
                      global, base_ranks, times));
    return global / (base_ranks * turns);
  }
  const int64_t base_replicas = flags.replicas ? flags.replicas : base_ranks;
  const int64_t global = flags.global_batch  ? flags.global_batch
                         : flags.local_batch ? flags.local_batch * base_replicas * turns
                                             : kDefaultGlobalBatch;
  if (global % (replicas * turns))
    throw ConfigError(
        fmt::format("strong scaling: the global batch {} is not divisible by {} {}{}; change "
                    "batch.global or --ranks",
                    global, replicas, flags.replicas ? "replicas" : "ranks", times));
  return global / (replicas * turns);
}

void check(const StudyFlags& flags) {
  if (flags.config.empty())
    throw ConfigError("tutti study needs a configuration: tutti study CONFIG --ranks 1,2,4");
  if (flags.ranks.empty())
    throw ConfigError("--ranks needs at least one rank count, for example --ranks 1,2,4");
  if (flags.repeats < 1)
    throw ConfigError(fmt::format("--repeats {} must be 1 or more", flags.repeats));
  std::set<int> seen;
  for (const int ranks : flags.ranks) {
    if (ranks < 1) throw ConfigError(fmt::format("--ranks: {} is not a number of ranks", ranks));
    if (!seen.insert(ranks).second) throw ConfigError(fmt::format("--ranks names {} twice", ranks));
    if (flags.replicas && flags.replicas < ranks)
      throw ConfigError(fmt::format("run.replicas = {} is less than the {} ranks of this study",
                                    flags.replicas, ranks));
  }
  if (flags.replicas && flags.mode == Mode::weak)
    throw ConfigError(
        fmt::format("weak scaling gives every rank one replica, but run.replicas = {} fixes their "
                    "number: remove "
                    "it, or use --mode strong",
                    flags.replicas));
}

}  // namespace

std::string_view name(Mode mode) { return mode == Mode::weak ? "weak" : "strong"; }

Mode parse_mode(std::string_view text) {
  if (text == "weak") return Mode::weak;
  if (text == "strong") return Mode::strong;
  throw ConfigError(fmt::format("--mode '{}' is not one of weak, strong", text));
}

std::vector<PlannedRun> plan_runs(const StudyFlags& flags) {
  check(flags);
  std::vector<int> ranks = flags.ranks;
  std::sort(ranks.begin(), ranks.end());
  std::vector<PlannedRun> runs;
  for (int repeat = 1; repeat <= flags.repeats; ++repeat)
    for (const int n : ranks) runs.push_back(plan_another(flags, n, repeat));
  return runs;
}

PlannedRun plan_another(const StudyFlags& flags, int ranks, int repeat) {
  const auto [least, most] = std::ranges::minmax(flags.ranks);
  const int cores = flags.cores ? flags.cores : cores_of_this_process();
  const int threads = flags.threads_per_rank ? flags.threads_per_rank : std::max(1, cores / most);
  PlannedRun run;
  run.ranks = ranks;
  run.repeat = repeat;
  run.seed = flags.seed + static_cast<uint64_t>(repeat - 1);
  run.local_batch = local_batch(flags, ranks, least);
  run.directory = fmt::format("{}/runs/n{:04}-r{}", flags.output_dir, ranks, repeat);
  run.command = {flags.program,         "train",        flags.config, "--ranks",
                 fmt::to_string(ranks), "--output-dir", run.directory};
  if (flags.oversubscribe) run.command.emplace_back("--oversubscribe");
  run.sets = flags.sets;
  // After the user's own settings: what the study varies and what it must hold fixed wins.
  run.sets.push_back(fmt::format("run.seed={}", run.seed));
  run.sets.push_back(fmt::format("run.threads={}", threads));
  run.sets.push_back(fmt::format("batch.local={}", run.local_batch));
  run.sets.push_back("batch.global=0");
  for (const std::string& set : run.sets) {
    run.command.push_back("--set");
    run.command.push_back(set);
  }
  return run;
}

}  // namespace tutti::study
