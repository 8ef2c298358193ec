#include "tutti/sync/served_parts.h"

#include <algorithm>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::sync {

std::vector<ServedPart> deal_to_servers(const exchange::BucketLayout& layout, int servers,
                                        bool whole) {
  CHECK(servers > 0, "{} servers", servers);
  std::vector<ServedPart> parts;
  std::vector<size_t> bytes(static_cast<size_t>(servers));
  const auto give = [&](int server, int bucket, const exchange::Shard& range) {
    if (range.bytes() == 0) return;
    parts.push_back({server, bucket, range});
    bytes[static_cast<size_t>(server)] += range.bytes();
  };
  for (int b = 0; b < static_cast<int>(layout.buckets.size()); ++b) {
    const size_t size = layout.buckets[static_cast<size_t>(b)].bytes;
    if (!whole && size > layout.bytes / static_cast<size_t>(servers)) {
      const std::vector<exchange::Shard> shards = exchange::shard_bounds(layout, b, servers);
      for (int s = 0; s < servers; ++s) give(s, b, shards[static_cast<size_t>(s)]);
    } else {
      give(static_cast<int>(std::ranges::min_element(bytes) - bytes.begin()), b, {0, size});
    }
  }
  if (parts.size() > static_cast<size_t>(served_tags::kMostParts))
    throw ConfigError(fmt::format(
        "{} parts of the weights on servers are more than the {} that can be told apart: raise "
        "comm.bucket_bytes",
        parts.size(), served_tags::kMostParts));
  if (const auto none = std::ranges::find(bytes, size_t{0}); none != bytes.end())
    throw ConfigError(fmt::format(
        "server {} of {} would get none of the {} bucket(s) of weights: take fewer servers "
        "(sync.servers, sync.server_ranks) or smaller buckets (comm.bucket_bytes)",
        none - bytes.begin(), servers, layout.buckets.size()));
  return parts;
}

void ServedCounts::add_gradients(int64_t stale, int64_t count) {
  const auto at = static_cast<size_t>(stale);
  if (staleness.size() <= at) staleness.resize(at + 1);
  staleness[at] += count;
}

double ServedCounts::stale_mean() const {
  double sum = 0, count = 0;
  for (size_t n = 0; n < staleness.size(); ++n) {
    sum += static_cast<double>(n) * static_cast<double>(staleness[n]);
    count += static_cast<double>(staleness[n]);
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tutti::sync
