#pragma once
// Shards: which part of a bucket's parameters each rank updates. A rank then needs the sum of its
// shard's gradients alone, and the others need its new weights: reduce-scatter, update, allgather.

#include <cstddef>
#include <vector>

#include "tutti/exchange/bucket.h"

namespace tutti {

/// Bytes [begin, end) of a bucket, counted from its first. May be empty.
struct Shard {
  size_t begin = 0, end = 0;
  size_t bytes() const { return end - begin; }
  bool operator==(const Shard&) const = default;
};

/// The shards of ranks 0 .. parts - 1 in order; they tile bucket `bucket` of `layout`. A bound that
/// is no end of the bucket lies on a block of kSumBlock floats (base/numeric/tree_sum.h), counted
/// from the start of the parameter that it falls in, so that sums over blocks have the same bits
/// sharded or not; of such bounds each is the one closest to an even division. A pure function: all
/// ranks get the same shards.
std::vector<Shard> shard_bounds(const BucketLayout& layout, int bucket, int parts);

}  // namespace tutti
