#pragma once
// The tuner times every algorithm of every collective and size on the given ranks, and chooses
// among them: `tutti bench comm --tune`.

#include <string>
#include <vector>

#include "tutti/cli/bench/comm_tuned_lines.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/cost/cost_fit.h"

namespace tutti {

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
  std::vector<comm::Selection::Line> lines;  ///< made from the times: cli/bench/comm_tuned_lines.h
  std::vector<int> node_of;                  ///< as Task::node_of
};

/// Times the algorithms. Collective; returns the same times and lines on every rank. The
/// algorithms of one collective and size take turns on the same buffers; a time is the median over
/// iterations of the mean over ranks. Algorithms that refuse the task are left out.
Tuning tune(comm::Communicator& communicator, const TuneOptions& options);

/// Reports, on rank 0, the measured times beside the prices that comm/cost/cost.h gives for the
/// network that fits best, and how good these prices are.
std::string tuning_report(const Tuning& tuning);

}  // namespace tutti
