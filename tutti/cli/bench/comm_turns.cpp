#include "tutti/cli/bench/comm_turns.h"

#include <algorithm>
#include <chrono>

namespace tutti::cli {

std::vector<std::vector<double>> time_in_turns(comm::Communicator& communicator,
                                               std::span<const std::function<void()>> calls,
                                               const Turns& turns) {
  std::vector<std::vector<double>> seconds(calls.size());
  for (int i = -turns.warmup; i < turns.iterations; ++i)
    for (size_t k = 0; k < calls.size(); ++k) {
      const size_t call = i % 2 == 0 ? k : calls.size() - 1 - k;
      turns.before();
      communicator.barrier();
      const auto begin = std::chrono::steady_clock::now();
      calls[call]();
      const double took =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (i >= 0) seconds[call].push_back(took);
    }
  return seconds;
}

std::vector<double> mean_over_ranks(comm::Communicator& communicator, std::vector<double> values) {
  communicator.sum(values);
  for (double& value : values) value /= communicator.size();
  return values;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace tutti::cli
