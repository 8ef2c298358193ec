// Tests how far apart ranks may be: a rank that only sends would otherwise never be held back.

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "tests/multirank/matrix_cases.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;  // the same for all processes of a machine

constexpr size_t kRuns = 40;

// One rank begins each run late. Returns how many runs this rank has begun too early: it may be as
// many runs ahead as there are messages on the way to the late rank. Adds wrong elements.
size_t run_with_late_rank(comm::Communicator& c, const Collected& what, int late) {
  Trial trial(c, what);
  std::array<int64_t, kRuns> begun{};
  for (int64_t& time : begun) {
    trial.fill(0);
    if (c.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    time = Clock::now().time_since_epoch().count();
    trial.operation().run();
  }
  const auto all = c.allgather_value(begun);
  const auto apart = static_cast<size_t>(c.size());
  size_t wrong = trial.wrong();
  for (size_t run = 0; run + apart < kRuns; ++run)
    wrong += begun[run + apart] < all[static_cast<size_t>(late)][run];
  return wrong;
}

}  // namespace

std::vector<MatrixCase> ahead_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for (int kind = 0; kind < comm::kCollectives; ++kind)
    for (const comm::Algorithm* algorithm : comm::algorithms()) {
      comm::Task task;
      task.kind = static_cast<comm::Collective>(kind), task.ranks = axes.ranks;
      task.node_of = axes.node_of, task.equal_blocks = true;
      if (axes.ranks == 1 || !algorithm->refusal(task).empty()) continue;
      const bool meets = task.kind == comm::Collective::barrier;
      const Collected what{.kind = task.kind,
                           .algorithm = std::string(algorithm->name),
                           .count = meets ? 0 : static_cast<size_t>(100 * axes.ranks)};
      const int late = axes.ranks - 1;
      all.push_back(
          {fmt::format("nobody far ahead of rank {}: {}", late, what.name()),
           [what, late](comm::Communicator& c) { return run_with_late_rank(c, what, late); }});
    }
  return all;
}

}  // namespace tutti
