#pragma once
// ShardedUpdate: every rank updates its shard of each bucket's parameters, and the ranks then share
// the new weights.
//
//   sum of the shard's gradients (GradientExchange with shards) -> update of the shard ->
//     updated(b) ... gather(b) -> next forward
// A rank keeps optimizer state for its shards alone. Where ranks see each other's memory the
// weights lie there once, and nothing is gathered: gather(b) waits until everyone has written its
// shard. Then nobody may write while another rank still reads the old weights, so an update waits
// for finish_reading() of all ranks too.
//
// Norms (LARS, LAMB) are sums over blocks, each of which lies in one shard: every rank sums its
// own, and the sum over ranks adds zeros to them. So the weights have the same bits sharded or not.

#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/bucket.h"
#include "tutti/exchange/shard.h"

namespace tutti {

/// The arena of parameters that ranks update together: one for all ranks where they share memory,
/// otherwise one each.
class SharedWeights {
 public:
  /// Collective. Zeroed memory of `bytes`: the buckets, and parameters that nobody updates.
  SharedWeights(comm::Communicator& communicator, const BucketLayout& layout, size_t bytes);
  std::byte* data() const { return data_; }
  bool shared() const { return shared_; }
  /// Whether this rank is the one that may fill them at the start.
  bool mine() const { return mine_; }

 private:
  bool shared_, mine_;
  std::unique_ptr<comm::Window> window_;
  std::byte* data_;
};

/// Not thread-safe; used by the thread that uses the communicator.
class ShardedUpdate {
 public:
  /// Collective. `norms`: how many block sums each set of norms has. Everything given must outlive
  /// this.
  ShardedUpdate(comm::Communicator& communicator, const BucketLayout& layout,
                const SharedWeights& weights, const std::vector<size_t>& norms);

  /// Of each rank.
  const std::vector<Shard>& shards(int bucket) const {
    return shards_[static_cast<size_t>(bucket)];
  }
  Shard mine(int bucket) const;

  /// This rank has read the weights for the last time in this step. Never blocks.
  void finish_reading();
  /// Whether all ranks have. Never blocks.
  bool all_have_read();
  void wait_for_readers();

  /// Starts adding up a set of block sums over ranks, each block's from its own. Never blocks.
  void start_norms(int set, std::span<const float> sums);
  bool norms_done(int set);
  /// Returns with the sums over all ranks.
  void finish_norms(int set, std::span<float> sums);

  /// This rank's shard of the bucket's weights is new. Never blocks.
  void updated(int bucket);
  /// Whether gather() would return at once. Never blocks.
  bool gathered(int bucket);
  /// Returns when all shards of the bucket are new here.
  void gather(int bucket);

  /// Seconds blocked in the waits above, since the construction.
  double exposed_seconds() const { return exposed_seconds_; }

 private:
  void wait(comm::Operation& operation);

  comm::Communicator& communicator_;
  std::vector<std::vector<Shard>> shards_;
  std::unique_ptr<comm::CollectiveOperation> readers_;  // null where weights are not shared
  std::vector<std::unique_ptr<comm::CollectiveOperation>> gathers_;  // by bucket
  std::vector<std::unique_ptr<comm::CollectiveOperation>> norms_;    // by set
  std::vector<std::vector<float>> norm_sums_;                        // what norms_ add up
  double exposed_seconds_ = 0;
};

}  // namespace tutti
