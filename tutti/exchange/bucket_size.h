#pragma once
// How large a bucket should be, from what an exchange costs on this machine.
//
// An exchange of s bytes takes t(s) = latency + s / bandwidth. A gradient of S bytes in buckets of
// s costs S / s latencies, which may or may not be hidden, and the last bucket's s / bandwidth,
// which nothing hides. Their sum is least at s = sqrt(latency * S * bandwidth).

#include <cstddef>

#include "tutti/comm/communicator.h"

namespace tutti {

/// t(s) = latency_s + s / bytes_per_s.
struct ExchangeCost {
  double latency_s = 0;
  double bytes_per_s = 0;
};

/// Through two points, bytes and seconds; bytes1 < bytes2. Never negative: a latency below zero is
/// noise, and so is a large exchange that is faster.
ExchangeCost fit_exchange(double bytes1, double seconds1, double bytes2, double seconds2);

/// The rule above as a power of two between 64 KiB and 16 MiB, so that noise changes it seldom.
size_t best_bucket_bytes(const ExchangeCost& cost, size_t gradient_bytes);

/// Collective. Times exchanges of 32 KiB and of 1 MiB between all ranks, the slowest rank's
/// medians. The same result on every rank.
ExchangeCost measure_exchange(comm::Communicator& communicator);

}  // namespace tutti
