#include "tutti/exchange/bucket.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::exchange {
namespace {

std::vector<size_t> bucket_sizes(const std::vector<size_t>& gradients, size_t target) {
  std::vector<GradientEntry> entries;
  for (const size_t bytes : gradients)
    entries.push_back({"w" + std::to_string(entries.size()), bytes});
  std::vector<size_t> sizes;
  for (const Bucket& bucket : partition_buckets(entries, target).buckets)
    sizes.push_back(bucket.bytes);
  return sizes;
}

TEST(Buckets, EndWhereTheSizeIsClosestToTheTarget) {
  EXPECT_EQ(bucket_sizes({64, 64, 64, 64}, 128), (std::vector<size_t>{128, 128}));
  EXPECT_EQ(bucket_sizes({640, 640, 640}, 1000), (std::vector<size_t>{1280, 640}))
      << "280 above is closer than 360 below";
  EXPECT_EQ(bucket_sizes({320, 1280}, 1000), (std::vector<size_t>{1600}))
      << "600 above is closer than 680 below";
  EXPECT_EQ(bucket_sizes({64, 6400, 64}, 128), (std::vector<size_t>{64, 6400, 64}))
      << "a large gradient stands alone";
  EXPECT_EQ(bucket_sizes({64, 64}, 1 << 20), (std::vector<size_t>{128})) << "less than one bucket";
  EXPECT_EQ(bucket_sizes({64, 64}, 0), (std::vector<size_t>{64, 64}));
  EXPECT_TRUE(bucket_sizes({}, 100).empty());
}

TEST(Buckets, TileTheArenaInOrderOnCacheLines) {
  Rng rng(1, Purpose::test, 0);
  std::vector<GradientEntry> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({"w", 4 * (1 + size_t{rng.below(5000)})});
  const BucketLayout layout = partition_buckets(entries, 30000);
  size_t at = 0;
  int entry = 0;
  for (size_t b = 0; b < layout.buckets.size(); ++b) {
    EXPECT_EQ(layout.buckets[b].begin, at);
    EXPECT_FALSE(layout.buckets[b].members.empty());
    for (const int member : layout.buckets[b].members) {
      EXPECT_EQ(member, entry++);
      EXPECT_EQ(layout.bucket_of[static_cast<size_t>(member)], static_cast<int>(b));
      EXPECT_EQ(layout.offsets[static_cast<size_t>(member)], at);
      EXPECT_EQ(at % 64, 0u);
      at += (entries[static_cast<size_t>(member)].bytes + 63) / 64 * 64;
    }
    EXPECT_EQ(layout.buckets[b].begin + layout.buckets[b].bytes, at);
  }
  EXPECT_EQ(entry, 100);
  EXPECT_EQ(layout.bytes, at);
}

TEST(Buckets, OddSizesAreRefused) {
  EXPECT_THROW(bucket_sizes({6}, 100), InternalError);
  EXPECT_THROW(bucket_sizes({0}, 100), InternalError);
}

}  // namespace
}  // namespace tutti::exchange
