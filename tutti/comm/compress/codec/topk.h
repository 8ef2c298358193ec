#pragma once
// MSTopK: the k largest magnitudes, and exactly k of them, by bisection of a threshold: no sort,
// only counts, and they vectorise. Shi et al., Towards scalable distributed training of deep
// learning on public cloud clusters, MLSys 2021 (arXiv 2010.10458).
//
// The paper halves the interval from the mean to the maximum of the magnitudes N = 30 times. Here
// the magnitudes are halved as integers, the bits of the float without its sign: 31 halvings end at
// the k-th largest itself, for any distribution, and NaN and infinity are simply the largest.
// `above` is the lowest tested threshold that k or fewer elements reach: these are taken. `from` is
// the highest that k or more reach; the elements between are equal, and a contiguous run of them
// (in index order) fills up to k. It begins at a place drawn from the step's number (the paper: at
// random), at the first candidate in step 0.
//
// It passes over a long vector four times: for two counts at thresholds that a sample of it
// suggests, for a copy of the elements between them, and for the encoding.

// An encoding is k floats in the order of their indices, then these as ascending uint32_t.

#include <cstdint>
#include <memory>
#include <span>

#include "tutti/comm/compress/codec/codec.h"

namespace tutti::comm {

/// Magnitudes are the bits of the float without its sign: as integers they have the order of the
/// magnitudes, infinity and NaN last.
struct TopkThresholds {
  uint32_t above = 0;   ///< all magnitudes from this one on are taken
  uint32_t from = 0;    ///< and some between this one and `above`
  size_t taken = 0;     ///< elements >= above, at most k
  size_t reaching = 0;  ///< elements >= from, at least k
};
/// Finds the thresholds. 1 <= k <= values.size() < 2^32. Does not allocate (64 KiB of stack).
TopkThresholds mstopk_thresholds(std::span<const float> values, size_t k,
                                 SharedWork* work = nullptr);

/// Returns max(1, round(ratio * count)); 0 for a count of 0.
size_t topk_count(double ratio, size_t count);

/// Makes the codec. 0 < ratio <= 1.
std::unique_ptr<Codec> make_topk(double ratio);

}  // namespace tutti::comm
