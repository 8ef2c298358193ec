#pragma once
// Chooses the size of a bucket from the measured cost of an exchange on this machine.
//
// An exchange of s bytes takes t(s) = latency + s / bandwidth. A gradient of S bytes in buckets of
// s costs S / s latencies, which may or may not be hidden, and the last bucket's s / bandwidth,
// which nothing hides. Their sum is least at s = sqrt(latency * S * bandwidth).

#include <cstddef>

#include "tutti/comm/communicator.h"

namespace tutti::exchange {

/// t(s) = latency_s + s / bytes_per_s.
struct ExchangeCost {
  double latency_s = 0;
  double bytes_per_s = 0;
};

/// Fits the cost through two points of bytes and seconds; bytes1 < bytes2. The result is never
/// negative: a latency below zero is noise, and so is a larger exchange that takes less time.
ExchangeCost fit_exchange(double bytes1, double seconds1, double bytes2, double seconds2);

/// Returns the rule's size as a power of two between 64 KiB and 16 MiB, so that noise rarely
/// changes it.
size_t best_bucket_bytes(const ExchangeCost& cost, size_t gradient_bytes);

/// Collective. Times exchanges of 32 KiB and of 1 MiB between all ranks and uses the slowest rank's
/// medians. The result is the same on every rank.
ExchangeCost measure_exchange(comm::Communicator& communicator);

}  // namespace tutti::exchange
