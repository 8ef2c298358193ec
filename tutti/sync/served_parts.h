#pragma once
// Servers of weights and their workers share these: each server's parts of the weights, where
// servers are ranks, the messages between them, and counts of their work.

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/exchange/bucket.h"
#include "tutti/exchange/shard.h"

namespace tutti::sync {

/// A range of one bucket that one server holds.
struct ServedPart {
  int server = 0;
  int bucket = 0;
  exchange::Shard range;
};

/// Assigns each bucket to the server that has least so far. A bucket above a server's share is
/// split evenly over all servers, unless `whole` is set: where an update needs a parameter's norm,
/// a parameter stays with one server. The result is in the order of buckets; a server has at most
/// one part of each. A pure function: all ranks get the same parts. Throws ConfigError if a server
/// would get none.
std::vector<ServedPart> deal_to_servers(const exchange::BucketLayout& layout, int servers,
                                        bool whole);

/// Ranks in one communicator. A rank may be both.
struct ServedRanks {
  std::vector<int> servers;
  std::vector<int> workers;  ///< for a group: the rank that sends for it
};

/// Tags of the messages between them.
namespace served_tags {
inline constexpr int kMostParts = 7000;
inline constexpr int kAsk = 2 * kMostParts, kGrant = kAsk + 1, kWish = kGrant + 1,
                     kVerdict = kWish + 1;
constexpr int gradient(size_t part) { return 2 * static_cast<int>(part); }
constexpr int weights(size_t part) { return gradient(part) + 1; }
}  // namespace served_tags

/// Returns the bytes of a value that is sent as it lies in memory.
template <class T>
std::span<std::byte> bytes_of_value(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// Counted since the last take_counts().
struct ServedCounts {
  int64_t updates = 0;
  int64_t version = 0;                  ///< updates over the whole run
  int64_t dropped = 0;                  ///< gradients that came too late for a quorum
  double bytes = 0;                     ///< between workers and servers; of ranks, of other ones
  std::vector<int64_t> staleness = {};  ///< [n]: gradients that came n updates after their weights
  int64_t spread = 0;  ///< most versions between a worker's oldest weights and the servers'

  void add_gradients(int64_t stale, int64_t count = 1);
  double stale_mean() const;  ///< NaN if there are none
};

}  // namespace tutti::sync
