#include "tutti/exchange/bucket_size.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "tutti/exchange/exchange.h"

namespace tutti::exchange {
namespace {

constexpr size_t kLeast = size_t{64} << 10;
constexpr size_t kMost = size_t{16} << 20;

// The median of the slowest rank's seconds.
double seconds_of(comm::Communicator& communicator, size_t bytes) {
  constexpr int kWarm = 2, kRuns = 7;
  GradientExchange exchange(
      communicator, ReplicaMap(communicator.size(), communicator.size(), communicator.rank()),
      partition_buckets(std::vector<GradientEntry>{{"measured exchange", bytes}}, bytes));
  std::vector<double> times;
  for (int run = 0; run < kWarm + kRuns; ++run) {
    std::fill_n(exchange.slot(0), bytes / sizeof(float),
                static_cast<float>(run));  // written by the slot's owner, as a gradient is
    communicator.barrier();
    const auto begin = std::chrono::steady_clock::now();
    exchange.ready(0, 0);
    exchange.wait(0);
    const double mine =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (run >= kWarm) times.push_back(communicator.most(mine));
  }
  std::ranges::nth_element(times, times.begin() + kRuns / 2);
  return times[kRuns / 2];
}

}  // namespace

ExchangeCost fit_exchange(double bytes1, double seconds1, double bytes2, double seconds2) {
  if (seconds2 <= seconds1)
    return {.latency_s = seconds1, .bytes_per_s = std::numeric_limits<double>::infinity()};
  const double rate = (bytes2 - bytes1) / (seconds2 - seconds1);
  return {.latency_s = std::max(0.0, seconds1 - bytes1 / rate), .bytes_per_s = rate};
}

size_t best_bucket_bytes(const ExchangeCost& cost, size_t gradient_bytes) {
  const double best =
      std::sqrt(cost.latency_s * static_cast<double>(gradient_bytes) * cost.bytes_per_s);
  if (!(best < static_cast<double>(kMost))) return kMost;  // infinite, or 0 times infinity
  const size_t below = std::bit_floor(std::max(kLeast, static_cast<size_t>(best)));
  return best > 1.5 * static_cast<double>(below) ? 2 * below : below;
}

ExchangeCost measure_exchange(comm::Communicator& communicator) {
  constexpr size_t kSmall = size_t{32} << 10, kLarge = size_t{1} << 20;
  const double small = seconds_of(communicator, kSmall);
  const double large = seconds_of(communicator, kLarge);
  return fit_exchange(kSmall, small, kLarge, large);
}

}  // namespace tutti::exchange
