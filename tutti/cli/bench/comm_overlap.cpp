#include "tutti/cli/bench/comm_overlap.h"

#include <chrono>

namespace tutti {
namespace {

// A chain of dependent arithmetic, the same work in every call, which calls progress() every
// millisecond.
void compute(comm::Communicator& communicator, size_t chunks) {
  constexpr int kChunk = 16384;  // tens of microseconds
  volatile double sink = 1;
  auto looked = std::chrono::steady_clock::now();
  for (size_t c = 0; c < chunks; ++c) {
    double x = sink;
    for (int i = 0; i < kChunk; ++i) x = x * 0.999999 + 1e-6;
    sink = x;
    if (const auto now = std::chrono::steady_clock::now();
        now - looked > std::chrono::milliseconds(1)) {
      looked = now;
      communicator.progress();
    }
  }
}

}  // namespace

double hidden_part(comm::Communicator& communicator, comm::Operation& operation,
                   const Turns& turns) {
  constexpr size_t kTrial = 64;
  size_t chunks = kTrial;
  const std::vector<std::function<void()>> calls = {[&] { operation.start(), operation.wait(); },
                                                    [&] { compute(communicator, chunks); },
                                                    [&] {
                                                      operation.start();
                                                      compute(communicator, chunks);
                                                      operation.wait();
                                                    }};
  const auto medians = [&](std::span<const std::function<void()>> some) {
    std::vector<double> found;
    for (const std::vector<double>& seconds : time_in_turns(communicator, some, turns))
      found.push_back(median(mean_over_ranks(communicator, seconds)));
    return found;
  };
  const std::vector<double> trial = medians(std::span(calls).first(2));
  chunks = static_cast<size_t>(trial[0] / (trial[1] / kTrial)) + 1;
  const std::vector<double> seconds = medians(calls);
  return (seconds[0] + seconds[1] - seconds[2]) / seconds[0];
}

}  // namespace tutti
