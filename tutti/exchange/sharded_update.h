#pragma once
// ShardedUpdate: every rank updates its shard of each bucket's parameters, and the ranks then share
// the new weights.
//
//   sum of the shard's gradients (GradientExchange with shards) -> update of the shard ->
//     updated(b) ... gather(b) -> next forward
// A rank keeps optimizer state for its shards alone. Where ranks see each other's memory there is
// one copy of the weights, and nothing is gathered: gather(b) waits until every rank has written
// its shard. No rank may write while another still reads the old weights, so an update also waits
// for finish_reading() of all ranks.
//
// Norms (LARS, LAMB) are sums over blocks, each of which lies in one shard: every rank sums its own
// blocks, and the sum over ranks only adds zeros to them. So the weights have the same bits sharded
// or not.

#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/bucket.h"
#include "tutti/exchange/shard.h"

namespace tutti::exchange {

/// The arena of parameters that ranks update together: one for all ranks where they share memory,
/// otherwise one per rank.
class SharedWeights {
 public:
  /// Collective. Allocates `bytes` of zeroed memory for the buckets and for parameters that are not
  /// updated.
  SharedWeights(comm::Communicator& communicator, const BucketLayout& layout, size_t bytes);
  std::byte* data() const { return data_; }
  bool shared() const { return shared_; }
  /// Returns whether this rank may fill the memory at the start.
  bool mine() const { return mine_; }

 private:
  bool shared_, mine_;
  std::unique_ptr<comm::Window> window_;
  std::byte* data_;
};

/// Not thread-safe; used by the thread that uses the communicator.
class ShardedUpdate {
 public:
  /// Collective. `norms` gives the number of block sums in each set of norms. All arguments must
  /// outlive this object.
  ShardedUpdate(comm::Communicator& communicator, const BucketLayout& layout,
                const SharedWeights& weights, const std::vector<size_t>& norms);

  /// Returns the shards of all ranks, by rank.
  const std::vector<Shard>& shards(int bucket) const {
    return shards_[static_cast<size_t>(bucket)];
  }
  Shard mine(int bucket) const;

  /// Announces that this rank has read the weights for the last time in this step. Never blocks.
  void finish_reading();
  /// Returns whether all ranks have announced that. Never blocks.
  bool all_have_read();
  void wait_for_readers();

  /// Starts adding up a set of block sums over ranks. Each block's sum comes from the rank that
  /// owns it. Never blocks.
  void start_norms(int set, std::span<const float> sums);
  bool norms_done(int set);
  /// Returns when the sums over all ranks are in `sums`.
  void finish_norms(int set, std::span<float> sums);

  /// Announces that this rank's shard of the bucket's weights is new. Never blocks.
  void updated(int bucket);
  /// Returns whether gather() would return at once. Never blocks.
  bool gathered(int bucket);
  /// Returns when all shards of the bucket are new on this rank.
  void gather(int bucket);

  /// Returns the seconds blocked in the waits above, since the construction.
  double exposed_seconds() const { return exposed_seconds_; }

 private:
  void wait(comm::Operation& operation);

  comm::Communicator& communicator_;
  std::vector<std::vector<Shard>> shards_;
  std::unique_ptr<comm::CollectiveOperation> readers_;  // null where weights are not shared
  std::vector<std::unique_ptr<comm::CollectiveOperation>> gathers_;  // by bucket
  std::vector<std::unique_ptr<comm::CollectiveOperation>> norms_;    // by set
  std::vector<std::vector<float>> norm_sums_;                        // summed by norms_
  double exposed_seconds_ = 0;
};

}  // namespace tutti::exchange
