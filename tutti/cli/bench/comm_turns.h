#pragma once
// Times calls that ranks do together, in turns: `tutti bench comm` compares everything this way.

#include <functional>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti::cli {

struct Turns {
  int warmup = 5;
  int iterations = 20;
  std::function<void()> before = [] {
  };  ///< called each time on every rank, then all ranks meet: owners write their buffers again
};

/// Returns the seconds of each call on this rank, by call and iteration. Collective; `calls` are
/// the same on every rank. Each iteration runs all of them, alternately forward and backward, so
/// that no call always follows the same other one.
std::vector<std::vector<double>> time_in_turns(comm::Communicator& communicator,
                                               std::span<const std::function<void()>> calls,
                                               const Turns& turns);

/// Returns the mean over ranks of each value. Collective; the same bits on every rank.
std::vector<double> mean_over_ranks(comm::Communicator& communicator, std::vector<double> values);

/// Returns the median, of an even number of values the upper one. REQUIRES: values is not empty.
double median(std::vector<double> values);

}  // namespace tutti::cli
