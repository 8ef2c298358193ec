#include "tutti/cli/job/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/numeric/hash.h"

namespace tutti::cli {

int count_progress_threads(const std::string& setting, int compute_threads, int cores) {
  if (setting == "auto") return cores > compute_threads ? 1 : 0;
  return std::stoi(setting);
}

ProgressChoice choose_progress(const std::string& setting, int compute_threads,
                               const std::vector<int>& processors) {
  const auto cores = static_cast<int>(processors.size());
  const int threads = count_progress_threads(setting, compute_threads, cores);
  const int bound = std::clamp(cores - compute_threads, 0, threads);
  ProgressChoice choice;
  choice.processors.assign(processors.end() - bound, processors.end());
  const std::string count = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
  if (threads == 0)
    choice.line = setting == "auto" ? "progress: polling between kernels, no core is free"
                                    : "progress: polling between kernels";
  else if (bound == threads)
    choice.line = fmt::format("progress: {} on core{} {}", count, bound == 1 ? "" : "s",
                              fmt::join(choice.processors, ", "));
  else
    choice.line = fmt::format(
        "progress: {}, {} without a core of its own: this rank has {} core{} for {} compute "
        "thread{}",
        count, threads - bound, cores, cores == 1 ? "" : "s", compute_threads,
        compute_threads == 1 ? "" : "s");
  choice.doubtful = bound < threads;
  choice.processors.resize(static_cast<size_t>(threads), comm::Progress::kNoCore);
  return choice;
}

int cores_of_rank(const device::Topology& topology, int local_ranks) {
  return std::min(topology.bound_cores, topology.usable_cores() / local_ranks);
}

std::vector<int> own_processors(comm::Communicator& communicator,
                                const device::Topology& topology) {
  const std::vector<int>& bound = topology.bound_processors;
  const std::vector<uint64_t> bindings = communicator.allgather_value(
      fnv1a(fmt::format("{} {}", communicator.host(), fmt::join(bound, ","))));
  const auto rank = static_cast<size_t>(communicator.rank());
  const auto sharers = std::ranges::count(bindings, bindings[rank]);
  const auto place =
      std::count(bindings.begin(), bindings.begin() + communicator.rank(), bindings[rank]);
  // A quota of processor time leaves less than the visible cores.
  const auto mine = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(bound.size()) / sharers,
                                             cores_of_rank(topology, communicator.local_size()));
  return {bound.begin() + place * mine, bound.begin() + (place + 1) * mine};
}

ProgressChoice start_progress(comm::Communicator& communicator, const std::string& setting,
                              int compute_threads, const device::Topology& topology) {
  if (communicator.size() == 1) return {};
  ProgressChoice choice =
      choose_progress(setting, compute_threads, own_processors(communicator, topology));
  if (const std::string refusal = communicator.progress_refusal();
      !choice.processors.empty() && !refusal.empty())
    choice = {
        .processors = {},
        .line = fmt::format(
            "progress: polling between kernels; threads need more than there is: {}", refusal),
        .doubtful = true};
  communicator.set_progress(std::make_shared<comm::Progress>(choice.processors));
  return choice;
}

std::string progress_setting_error(const std::string& setting) {
  const bool count = !setting.empty() && setting.size() <= 2 &&
                     std::ranges::all_of(setting, [](char c) { return '0' <= c && c <= '9'; });
  return setting == "auto" || count
             ? ""
             : fmt::format("expected auto or a number of threads, got '{}'", setting);
}

}  // namespace tutti::cli
