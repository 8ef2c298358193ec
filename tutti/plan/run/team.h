#pragma once
// The parts that the team executor's sources share: a thread's kernels, and the team of threads.
// Private to team_executor*.cpp.

#include <omp.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/plan/run/places.h"
#include "tutti/plan/run/step_timer.h"
#include "tutti/plan/run/team_executor.h"

namespace tutti::plan {

/// One thread's kernels for one step: an instance for each tile size that its share of the batch is
/// cut into.
struct TeamExecutor::ReadyStep {
  const Step* step = nullptr;
  std::vector<std::pair<int64_t, std::unique_ptr<backend::Kernel>>> kernels;
  std::vector<void*> in, out;  // scratch for the arguments of the call being made
  size_t state = 0;            // offset in the thread's states
  double run_seconds = 0, finish_seconds = 0;
  trace::Spans::Name span = 0;

  backend::Kernel& kernel(int64_t samples) {
    for (auto& [n, k] : kernels)
      if (n == samples) return *k;
    CHECK(false, "{}: no kernel for a tile of {}", step->name, samples);
  }
};

struct TeamExecutor::Thread {
  device::Buffer tile, workspace;
  device::Buffer states_of_band;  // accumulators live for one band, so all bands share this
  std::vector<ReadyStep> packs, updates;
  std::vector<std::vector<ReadyStep>> bands;
  std::vector<void*> states;  // scratch for finish
  int lane = 0;               // lane in the timeline
};

/// The threads, as seen by a kernel of a step that all of them share.
class TeamExecutor::Sharing final : public backend::Team {
 public:
  explicit Sharing(TeamExecutor& executor) : executor_(executor) {}
  void meet() override {
    executor_.meet();
    if (omp_get_thread_num() == 0) executor_.poll_exchanges();  // the next may be far off
  }
  void* workspace(int part) const override {
    return executor_.threads_[static_cast<size_t>(part)]->workspace.data();
  }

 private:
  TeamExecutor& executor_;
};

/// A plan cuts the work for `wanted` threads; fewer would leave a part of the batch out.
inline void require_team(int wanted, int got) {
  if (got == wanted) return;
  if (omp_get_max_active_levels() < 1)
    throw DeviceError(
        fmt::format("OpenMP was asked for a team of {} threads and gives {}, since "
                    "OMP_MAX_ACTIVE_LEVELS=0 allows no team: unset it, or use one thread "
                    "(--threads 1)",
                    wanted, got));
  throw DeviceError(
      fmt::format("OpenMP was asked for a team of {} threads and gives {} (its limit is {}): use "
                  "fewer threads (--threads), or raise OMP_THREAD_LIMIT",
                  wanted, got, omp_get_thread_limit()));
}

/// Calls fn(thread) on each thread of the team. An exception in one of them (an exchange that
/// failed, on thread 0) ends the others at their next barrier and is thrown again here, because it
/// may not leave a parallel region.
template <class Fn>
void TeamExecutor::parallel(Fn fn) {
  const int team = plan_.options.threads;
  if (team == 1) return fn(0);
  // Threads would leave at a broken barrier before their work is done, without any error.
  CHECK(!barrier_.broken(), "an executor is used again after one of its threads has failed");
  std::exception_ptr failure;
#pragma omp parallel num_threads(team)
  {
    try {
      // The rest of a team that is too small would wait for the missing threads for ever.
      require_team(team, omp_get_num_threads());
      fn(omp_get_thread_num());
    } catch (const Barrier::Broken&) {
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
      barrier_.break_up();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tutti::plan
