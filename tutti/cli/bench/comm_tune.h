#pragma once
// The tuner times every algorithm of every collective and size on the given ranks, and chooses
// among them: `tutti bench comm --tune`.

#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/cost/cost_fit.h"
#include "tutti/comm/schedule/selection.h"

namespace tutti::cli {

/// The time of one algorithm.
struct AlgorithmTime {
  comm::Collective kind = comm::Collective::allreduce;
  size_t bytes = 0;  ///< size of the long vector
  std::string algorithm;
  bool reproducible = false;  ///< it adds in the order of comm/schedule/tree.h, or adds nothing
  double seconds = 0;
};

struct TuneOptions {
  std::vector<comm::Collective> kinds;
  std::vector<size_t> sizes;  ///< bytes of the long vector
  comm::Element element = comm::Element::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  int iterations = 20;
  int warmup = 5;
};

struct Tuning {
  std::vector<AlgorithmTime> times;
  std::vector<comm::MeasuredSchedules>
      measured;  ///< one for each time, on rank 0; none where there are too many ranks to price
  std::vector<comm::Selection::Line> lines;  ///< fastest_lines() of the times
  std::vector<int> node_of;                  ///< as Task::node_of
};

/// Returns the fastest algorithm of each collective and size, for calls that need the order of the
/// tree and, where other orders were measured too, for calls that do not. An algorithm is kept at
/// the next size unless another is faster by more than `tie` of its time: differences smaller than
/// the noise would only make the table long. Between two sizes with different winners the bound is
/// their geometric mean; the largest size's winner is taken for all larger sizes. `times`: in any
/// order; an algorithm may be missing at some sizes.
std::vector<comm::Selection::Line> fastest_lines(std::span<const AlgorithmTime> times, int ranks,
                                                 bool one_node, double tie = 0.03);

/// Times the algorithms. Collective; returns the same times and lines on every rank. The
/// algorithms of one collective and size take turns on the same buffers; a time is the median over
/// iterations of the mean over ranks. Algorithms that refuse the task are left out.
Tuning tune(comm::Communicator& communicator, const TuneOptions& options);

/// Reports, on rank 0, the measured times beside the prices that comm/cost/cost.h gives for the
/// network that fits best, and how good these prices are.
std::string tuning_report(const Tuning& tuning);

}  // namespace tutti::cli
