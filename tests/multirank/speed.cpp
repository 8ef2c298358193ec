#include "tests/multirank/speed.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/exchange/exchange.h"

namespace tutti {
namespace {

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Returns the slowest rank's time, on all ranks.
template <class Work>
double slowest(comm::Communicator& c, Work work) {
  c.barrier();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double mine =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  double worst = 0;
  for (const double t : c.allgather_value(mine)) worst = std::max(worst, t);
  return worst;
}

void measure(comm::Communicator& c, size_t bytes) {
  exchange::GradientExchange exchange(
      c, exchange::ReplicaMap(c.size(), c.size(), c.rank()),
      exchange::partition_buckets(std::vector<exchange::GradientEntry>{{"g", bytes}}, bytes));
  std::vector<float> source(bytes / 4, 1.0f);
  std::vector<float> target(bytes / 4, 2.0f);
  const auto write_gradient = [&](int step) {
    float* g = exchange.slot(0);
    for (size_t i = 0; i < bytes / 4; ++i)
      g[i] = static_cast<float>(static_cast<int>(i & 1023) + step + c.rank());
  };
  std::vector<double> reduce;
  std::vector<double> copy;
  for (int round = 0; round < 60; ++round) {
    write_gradient(round);
    reduce.push_back(slowest(c, [&] {
      exchange.ready(0, 0);
      exchange.wait(0);
    }));
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(round);
    copy.push_back(slowest(c, [&] {
      std::memcpy(target.data(), source.data(), bytes);
      asm volatile("" ::"r"(target.data()) : "memory");
    }));
  }
  if (c.rank() == 0)
    std::printf(
        "%9zu bytes, %d ranks, %s: reduction %8.1f us, concurrent memcpy %8.1f us, ratio of speeds "
        "%.2f\n",
        bytes, c.size(), c.transport().c_str(), median(reduce), median(copy),
        median(copy) / median(reduce));
}

}  // namespace

void measure_speed(comm::Communicator& c) {
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{2640000}, size_t{32} << 20})
    measure(c, bytes);
}

}  // namespace tutti
