#pragma once
// Which server has which part of the weights, and who the workers are, where servers are ranks.

#include <vector>

#include "tutti/exchange/bucket.h"
#include "tutti/exchange/shard.h"

namespace tutti {

/// A run of one bucket that one server has.
struct ServedPart {
  int server = 0;
  int bucket = 0;
  Shard range;
};

/// Each bucket goes to the server that has least until then, but one that is more than a server's
/// share is cut evenly over all, unless `whole`: where an update needs a parameter's norm, a
/// parameter stays with one server. In the order of buckets; a server has at most one part of each.
/// A pure function: all ranks get the same parts. ConfigError where a server would get none.
std::vector<ServedPart> deal_to_servers(const BucketLayout& layout, int servers, bool whole);

/// Ranks of one communicator. A rank may be both.
struct ServedRanks {
  std::vector<int> servers;
  std::vector<int> workers;  ///< of a group the one that sends for it
};

/// Of the messages between them.
namespace served_tags {
inline constexpr int kMostParts = 7000;
inline constexpr int kAsk = 2 * kMostParts, kGrant = kAsk + 1, kWish = kGrant + 1,
                     kVerdict = kWish + 1;
constexpr int gradient(size_t part) { return 2 * static_cast<int>(part); }
constexpr int weights(size_t part) { return gradient(part) + 1; }
}  // namespace served_tags

}  // namespace tutti
