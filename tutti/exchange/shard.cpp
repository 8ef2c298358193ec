#include "tutti/exchange/shard.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/numeric/tree_sum.h"

namespace tutti::exchange {
namespace {

constexpr size_t kBlockBytes = kSumBlock * sizeof(float);

/// Returns the allowed bound closest to `wanted`, the lower one if two are equally close; both are
/// relative to the bucket's start.
size_t closest_bound(const BucketLayout& layout, const Bucket& bucket, size_t wanted) {
  const auto start_of = [&](int member) {
    return layout.offsets[static_cast<size_t>(member)] - bucket.begin;
  };
  const auto after = std::ranges::upper_bound(bucket.members, wanted, {}, start_of);
  const size_t start = start_of(*(after - 1)),
               end = after == bucket.members.end() ? bucket.bytes : start_of(*after);
  const size_t below = start + (wanted - start) / kBlockBytes * kBlockBytes,
               above = std::min(below + kBlockBytes, end);
  return wanted - below <= above - wanted ? below : above;
}

}  // namespace

std::vector<Shard> shard_bounds(const BucketLayout& layout, int bucket, int parts) {
  CHECK(0 <= bucket && bucket < static_cast<int>(layout.buckets.size()), "bucket {} of {}", bucket,
        layout.buckets.size());
  CHECK(parts > 0, "{} shards", parts);
  const Bucket& whole = layout.buckets[static_cast<size_t>(bucket)];
  const auto count = static_cast<size_t>(parts);
  std::vector<Shard> shards;
  size_t begin = 0;
  for (size_t p = 1; p <= count; ++p) {
    const size_t end =
        p == count ? whole.bytes : closest_bound(layout, whole, whole.bytes * p / count);
    shards.push_back({begin, end});
    begin = end;
  }
  return shards;
}

}  // namespace tutti::exchange
