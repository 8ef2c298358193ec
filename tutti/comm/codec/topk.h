#pragma once
// MSTopK: about the k largest magnitudes, and exactly k of them, by bisection of a threshold: no sort, only counts, and they vectorise.
// Shi et al., Towards scalable distributed training of deep learning on public cloud clusters, MLSys 2021 (arXiv 2010.10458).
//
// The paper halves the interval from the mean to the maximum of the magnitudes N = 30 times. `above` is the lowest threshold met that k or
// fewer elements reach: these are taken. `from` is the highest that more than k reach: of those between, a contiguous run (in index order)
// fills up to k. So every magnitude taken is at least the k-th largest less the width of the last interval, (maximum - mean) 2^-30, or a
// float's rounding where that is more.
//
// What the paper leaves open:
//   k or fewer reach the mean   the interval from 0 to the mean is halved instead
//   NaN and infinity            are larger than every number and are taken first; mean and maximum are of the others
//   the run                     begins at a place drawn from the step's number (the paper: at random), at the first candidate in step 0
//
// Encoded: k floats in the order of their indices, then their k indices as uint32_t, ascending.

#include <cstdint>
#include <memory>
#include <span>

#include "tutti/comm/codec/codec.h"

namespace tutti::comm {

/// Magnitudes as the bits of the float without its sign: as integers they have the order of the magnitudes, infinity and NaN last.
struct TopkThresholds {
  uint32_t above = 0;   ///< all magnitudes from here on are taken
  uint32_t from = 0;    ///< and some of those from here to `above`
  size_t taken = 0;     ///< elements >= above, at most k
  size_t reaching = 0;  ///< elements >= from, at least k
};
/// 1 <= k <= values.size() < 2^32. Does not allocate (16 KiB of stack).
TopkThresholds mstopk_thresholds(std::span<const float> values, size_t k);

/// max(1, round(ratio * count)); 0 of 0.
size_t topk_count(double ratio, size_t count);

/// 0 < ratio <= 1.
std::unique_ptr<Codec> make_topk(double ratio);

}  // namespace tutti::comm
