#include "tutti/exchange/bucket.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::exchange {
namespace {

constexpr size_t kAlignment = 64;
size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BucketLayout partition_buckets(std::span<const GradientEntry> entries, size_t target_bytes) {
  BucketLayout layout;
  for (size_t i = 0; i < entries.size(); ++i) {
    CHECK(entries[i].bytes % sizeof(float) == 0 && entries[i].bytes > 0,
          "gradient '{}' has {} bytes", entries[i].name, entries[i].bytes);
    const size_t bytes = padded(entries[i].bytes);
    const bool first = layout.buckets.empty();
    // Ends the open bucket when this gradient would overshoot the target by more than what is
    // missing without it.
    const bool ends = !first && layout.buckets.back().bytes + bytes > target_bytes &&
                      (layout.buckets.back().bytes >= target_bytes ||
                       layout.buckets.back().bytes + bytes - target_bytes >
                           target_bytes - layout.buckets.back().bytes);
    if (first || ends)
      layout.buckets.push_back(
          {fmt::format("bucket {}", layout.buckets.size()), layout.bytes, 0, {}});
    Bucket& bucket = layout.buckets.back();
    bucket.members.push_back(static_cast<int>(i));
    bucket.bytes += bytes;
    layout.offsets.push_back(layout.bytes);
    layout.bucket_of.push_back(static_cast<int>(layout.buckets.size()) - 1);
    layout.bytes += bytes;
  }
  return layout;
}

std::string BucketLayout::to_string() const {
  std::string text;
  for (const Bucket& bucket : buckets)
    text += fmt::format("{}: {} gradients, {} bytes at {}\n", bucket.name, bucket.members.size(),
                        bucket.bytes, bucket.begin);
  return text;
}

}  // namespace tutti::exchange
