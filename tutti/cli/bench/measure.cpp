#include "tutti/cli/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace tutti::cli {
namespace {

constexpr int kVectorBytes = __BIGGEST_ALIGNMENT__;  // vector size of the instruction set that
                                                     // -march chose
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(float));
typedef float Vector __attribute__((vector_size(kVectorBytes)));
constexpr int kChains =
    12;  // enough for two units with a latency of four to six cycles, few enough for 16 registers

/// 2 * kChains * kLanes FLOP an iteration. The result depends on every operation, so none can be
/// left out.
float multiply_add(int64_t iterations, float start) {
  Vector chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = Vector{} + (start + static_cast<float>(i));
  const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
  for (int64_t n = 0; n < iterations; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  float sum = 0;
  for (const Vector& v : chain)
    for (int lane = 0; lane < kLanes; ++lane) sum += v[lane];
  return sum;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the best of several tries, after one that wakes the threads: other work on the machine
/// only ever adds time.
double best_of(int tries, const std::function<void()>& work) {
  work();
  double best = 1e30;
  for (int i = 0; i < tries; ++i) best = std::min(best, seconds_of(work));
  return best;
}

}  // namespace

int built_vector_bytes() { return kVectorBytes; }

int cpu_vector_bytes() {
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx")) return 32;
  return 16;
}

double measure_peak_flops(int threads) {
  constexpr int64_t kIterations = 500'000;  // 1 to 3 ms, shorter than a time slice
  volatile float sink = 0;
  const double seconds = best_of(80, [&] {
    float sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    sum += multiply_add(kIterations, 1.0f);
    sink = sum;
  });
  return 2.0 * kChains * kLanes * static_cast<double>(kIterations) * threads / seconds;
}

PeakRates peak_rates(int threads, const std::function<double(int)>& measure) {
  constexpr int kTries = 3;
  PeakRates best;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    best.one = std::max(best.one, measure(1));
    best.all = threads > 1 ? std::max(best.all, measure(threads)) : best.one;
    if (best.all >= kExpectedRate * best.one * threads) break;
  }
  return best;
}

double measure_bandwidth(int threads, int64_t array_bytes) {
  const int64_t n = array_bytes / static_cast<int64_t>(sizeof(double));
  const auto array = [&] {
    return std::make_unique_for_overwrite<double[]>(static_cast<size_t>(n));
  };
  const auto a = array(), b = array(), c = array();
  double *pa = a.get(), *pb = b.get(), *pc = c.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n; ++i)
    pa[i] = 0, pb[i] = 1, pc[i] = 2;  // each thread first touches what it uses later
  const double seconds = best_of(6, [&] {
#pragma omp parallel for simd num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n; ++i) pa[i] = pb[i] + 3.0 * pc[i];
  });
  return 3.0 * static_cast<double>(n) * sizeof(double) / seconds;
}

}  // namespace tutti::cli
