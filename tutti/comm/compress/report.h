#pragma once
// The costs and savings of compression on one rank, measured while it runs.

#include <cstdint>
#include <string>

#include "tutti/comm/compress/codec/error_feedback.h"

namespace tutti::comm {

/// Sums over runs of one or of several compressed reductions. To be divided by the steps that they
/// cover for averages.
struct CompressionReport {
  uint64_t runs = 0;
  uint64_t bytes = 0;         ///< received by this rank
  uint64_t dense_bytes = 0;   ///< bytes that it would have received uncompressed: 2 (P-1)/P of the
                              ///< f32 vector, the least of any allreduce
  double codec_seconds = 0;   ///< encoding, decoding and summing
  double caller_seconds = 0;  ///< the part of them on the thread that called start(): without
                              ///< progress threads all, taken from computation
  double exchange_seconds = 0;  ///< from the start of each exchange to its end: much of it may be
                                ///< hidden behind computation
  Loss loss = {};  ///< loss of gradients with residuals, without runs where it is not finite
  uint64_t not_finite = 0;  ///< number of runs whose loss is not finite

  CompressionReport& operator+=(const CompressionReport& other);
  /// Subtracts an earlier state of the same sums.
  CompressionReport& operator-=(const CompressionReport& earlier);
  /// Returns ||acc - decoded(encoded(acc))|| / ||acc||, acc = gradient + residual, over all runs
  /// and elements: 0 nothing lost, 1 nothing sent.
  double error() const;
  /// Returns dense_bytes / bytes; 1 when nothing was received.
  double reduction() const;
};

/// Returns the link bandwidth, in bytes per second and rank, at which compressed and dense exchange
/// take equally long when neither is hidden:
///   dense_bytes / B = bytes / B + codec_seconds   =>   B = (dense_bytes - bytes) / codec_seconds
/// On slower links compression pays, on faster ones it does not. Latencies are left out: both have
/// about as many rounds. 0 when it saves no bytes; infinite when the codec takes no time.
double break_even_bandwidth(const CompressionReport& report);

/// Formats "moved 0.13 of 2.10 MB a step (16.0 times less), codec 0.41 ms, exchange 1.20 ms,
/// relative error 0.83; breaks even at 4.8 GB/s a rank". steps >= 1.
std::string to_string(const CompressionReport& report, uint64_t steps);

}  // namespace tutti::comm
