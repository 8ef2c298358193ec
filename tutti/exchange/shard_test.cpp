#include "tutti/exchange/shard.h"

#include <gtest/gtest.h>

#include <set>

#include "tutti/base/numeric/rng.h"
#include "tutti/base/numeric/tree_sum.h"

namespace tutti::exchange {
namespace {

constexpr size_t kBlockBytes = kSumBlock * sizeof(float);

BucketLayout layout_of(const std::vector<size_t>& bytes, size_t target) {
  std::vector<GradientEntry> entries;
  for (const size_t b : bytes) entries.push_back({"w" + std::to_string(entries.size()), b});
  return partition_buckets(entries, target);
}

std::vector<size_t> ends(const std::vector<Shard>& shards) {
  std::vector<size_t> all;
  for (const Shard& shard : shards) all.push_back(shard.end);
  return all;
}

TEST(Shards, OneParameterIsCutIntoBlocks) {
  const BucketLayout layout = layout_of({10 * kBlockBytes}, 1);
  EXPECT_EQ(ends(shard_bounds(layout, 0, 1)), (std::vector<size_t>{10 * kBlockBytes}));
  EXPECT_EQ(ends(shard_bounds(layout, 0, 2)),
            (std::vector<size_t>{5 * kBlockBytes, 10 * kBlockBytes}));
  EXPECT_EQ(ends(shard_bounds(layout, 0, 3)),
            (std::vector<size_t>{3 * kBlockBytes, 7 * kBlockBytes, 10 * kBlockBytes}));
}

TEST(Shards, BoundsMoveToTheStartsOfSmallParameters) {
  const BucketLayout layout =
      layout_of({64, 128, 64, 1024}, 1 << 20);  // none is larger than a block
  EXPECT_EQ(ends(shard_bounds(layout, 0, 2)), (std::vector<size_t>{256, 1280}));
  EXPECT_EQ(ends(shard_bounds(layout, 0, 10)),
            (std::vector<size_t>{64, 256, 256, 256, 256, 256, 1280, 1280, 1280, 1280}))
      << "some shards are empty";
}

TEST(Shards, CountFromTheirOwnBucket) {
  const BucketLayout layout = layout_of({4 * kBlockBytes, 4 * kBlockBytes}, 1);
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(shard_bounds(layout, 1, 2),
            (std::vector<Shard>{{0, 2 * kBlockBytes}, {2 * kBlockBytes, 4 * kBlockBytes}}));
}

TEST(Shards, TileTheBucketOnAllowedBoundsAndAreBalanced) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, Purpose::test, 0);
    std::vector<size_t> bytes;
    for (uint32_t i = 0, n = 1 + rng.below(30); i < n; ++i)
      bytes.push_back(4 * (1 + rng.below(rng.below(2) ? 100 : 20000)));
    const BucketLayout layout = layout_of(bytes, 1 + rng.below(400'000));
    for (size_t b = 0; b < layout.buckets.size(); ++b) {
      const Bucket& bucket = layout.buckets[b];
      std::set<size_t> allowed{bucket.bytes};
      for (const int member : bucket.members)
        for (size_t at = 0; at < bytes[static_cast<size_t>(member)]; at += kBlockBytes)
          allowed.insert(layout.offsets[static_cast<size_t>(member)] - bucket.begin + at);
      const int parts = 1 + static_cast<int>(rng.below(9));
      const std::vector<Shard> shards = shard_bounds(layout, static_cast<int>(b), parts);
      ASSERT_EQ(shards.size(), static_cast<size_t>(parts));
      size_t end = 0;
      for (size_t p = 0; p < shards.size(); ++p) {
        EXPECT_EQ(shards[p].begin, end) << "seed " << seed;
        EXPECT_LE(shards[p].begin, shards[p].end);
        end = shards[p].end;
        EXPECT_TRUE(allowed.contains(end)) << "seed " << seed << " bucket " << b << " byte " << end;
        const double even = static_cast<double>(bucket.bytes) / parts;
        EXPECT_LE(static_cast<double>(shards[p].bytes()), even + kBlockBytes + 1)
            << "a bound moves by half a block at most";
      }
      EXPECT_EQ(end, bucket.bytes);
    }
  }
}

TEST(Shards, RefuseWhatIsNotThere) {
  const BucketLayout layout = layout_of({64}, 1);
  EXPECT_THROW(shard_bounds(layout, 1, 2), std::exception);
  EXPECT_THROW(shard_bounds(layout, 0, 0), std::exception);
}

}  // namespace
}  // namespace tutti::exchange
