#pragma once
// Calls that ranks do together, timed in turns: the way in which `tutti bench comm` compares
// anything with anything.

#include <functional>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti {

struct Turns {
  int warmup = 5;
  int iterations = 20;
  std::function<void()> before = [] {
  };  ///< each time, on every rank, then all ranks meet: owners write their buffers again
};

/// Seconds of each call on this rank, by call and iteration. Collective; `calls` are the same on
/// every rank. Each iteration runs all of them, forward and backward in turns, so that none is
/// always the one after a certain other.
std::vector<std::vector<double>> time_in_turns(comm::Communicator& communicator,
                                               std::span<const std::function<void()>> calls,
                                               const Turns& turns);

/// The means over ranks of each value. Collective; the same bits on every rank.
std::vector<double> mean_over_ranks(comm::Communicator& communicator, std::vector<double> values);

/// The upper one of an even number. Not of nothing.
double median(std::vector<double> values);

}  // namespace tutti
