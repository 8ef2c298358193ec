#pragma once
// Shards: the part of a bucket's parameters that each rank updates. A rank then needs only the
// sum of its shard's gradients, and the others need its new weights: reduce-scatter, update,
// allgather.

#include <cstddef>
#include <vector>

#include "tutti/exchange/bucket.h"

namespace tutti::exchange {

/// A range of bytes [begin, end) within a bucket. May be empty.
struct Shard {
  size_t begin = 0, end = 0;
  size_t bytes() const { return end - begin; }
  bool operator==(const Shard&) const = default;
};

/// Returns the shards of ranks 0 .. parts - 1 in order; they tile bucket `bucket` of `layout`.
/// Bounds inside the bucket lie on multiples of kSumBlock floats (base/numeric/tree_sum.h) from the
/// start of the parameter that contains them, so that sums over blocks have the same bits with or
/// without shards; each is the allowed bound closest to an even division. A pure function: all
/// ranks get the same shards.
std::vector<Shard> shard_bounds(const BucketLayout& layout, int bucket, int parts);

}  // namespace tutti::exchange
