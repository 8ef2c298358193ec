#pragma once
// Two short measurements of the machine's best rates; `tutti doctor` prints them beside every other
// fact.

#include <cstdint>
#include <functional>

namespace tutti::cli {

/// Returns the bytes of a vector register in the instruction set this program was built for.
int built_vector_bytes();
/// Returns the bytes of the widest floating-point vector register of the CPU it runs on.
int cpu_vector_bytes();

/// Returns the fp32 FLOP/s of independent fused multiply-adds held in registers, on `threads`
/// threads; the best of several tries (0.3 s).
double measure_peak_flops(int threads);

/// All threads should reach this share of threads x one thread's rate: all cores may clock lower.
constexpr double kExpectedRate = 0.6;

/// Measures the rates of one thread and of all threads. Where the latter is bad, both are measured
/// again, up to twice and some time later, and the best counts: the system may have had two threads
/// on one core for as long as one try takes. `measure`: measure_peak_flops.
struct PeakRates {
  double one = 0, all = 0;
};
PeakRates peak_rates(int threads, const std::function<double(int)>& measure);

/// Returns the bytes/s of a[i] = b[i] + s * c[i] over three arrays of `array_bytes` each: 2 reads
/// and 1 write are counted, as in STREAM's triad.
double measure_bandwidth(int threads, int64_t array_bytes);

}  // namespace tutti::cli
