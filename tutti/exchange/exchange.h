#pragma once
// GradientExchange: sums the gradient over all replicas, bucket by bucket, while the backward pass
// still runs.
//
// One training step of a rank with local replicas 0 .. n-1:
//   for each local replica i: run its backward into slot(i); when bucket b of it is complete:
//     ready(i, b); between kernels: poll()
//   for each bucket b, at the latest before the next forward needs its weights: wait(b); update
//     with result(b)
// Backward writes into the memory that the sum is sent from; nothing is copied in between. Folding
// local replicas needs log2(n) + 1 slots, not n. Buckets that are produced later are needed earlier
// by the next forward, so they overtake the buckets before them.
//
// slot(i) may be written as soon as all buckets of the previous step have been waited for.
// result(b) is valid from wait(b) until ready() for b in the next step's last local replica. The
// sum is not divided by the number of replicas.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/compress/node_groups.h"
#include "tutti/exchange/bucket.h"
#include "tutti/exchange/bucket_sum.h"
#include "tutti/exchange/compression_policy.h"
#include "tutti/exchange/replicas.h"

namespace tutti::exchange {

/// Selects the compressed buckets and their compression. A compressed step's sums depend on the
/// number of ranks.
struct ExchangeCompression {
  std::vector<bool> buckets = {};  ///< by bucket; empty: none is compressed
  std::vector<std::vector<comm::MatrixBlock>> matrices =
      {};                                     ///< by bucket, for powersgd; may be empty
  bool automatic = false;                     ///< measure first (exchange/compression_trial.h)
  std::vector<CompressionPhase> phases = {};  ///< by steps; CompressionMethod::none: dense
};

struct ExchangeSettings {
  bool reproducible =
      true;              ///< the same bits on any number of ranks; false: use the fastest algorithm
  bool priority = true;  ///< buckets overtake; false: first come, first served
  size_t chunk_bytes = 0;  ///< larger buckets run in pieces, so that they can be overtaken; 0: one
                           ///< piece in shared memory, elsewhere 512 KiB
                           ///< or 4 KiB a rank
  std::string algorithm = {};  ///< from comm/algorithm; empty: the communicator's selection
  ExchangeCompression compression = {};
  bool sharded = false;  ///< each rank gets every bucket's sum for its shard only
                         ///< (exchange/shard.h); result() is valid only there
};

/// Counted since the construction.
struct ExchangeCounters {
  double exposed_seconds = 0;   ///< blocked in wait(): communication that was not hidden
  double folding_seconds = 0;   ///< adding up local replicas
  double starting_seconds = 0;  ///< starting sums; compressed ones are encoded then
  uint64_t bytes_moved = 0;     ///< received from other ranks, or read in their memory
  uint64_t reductions = 0;
};

/// Not thread-safe; used by the thread that uses the communicator.
class GradientExchange {
 public:
  /// Collective: allocates the slots and plans one sum per bucket. The communicator must outlive
  /// the exchange.
  GradientExchange(comm::Communicator& communicator, ReplicaMap map, BucketLayout layout,
                   const ExchangeSettings& settings = {});

  /// Returns the base of the gradient arena (layout().bytes, 64-byte aligned, padding zero) that
  /// this local replica's backward writes into.
  float* slot(int local_replica) const;
  /// Announces the number of the next step, which decides how compressed buckets are sent; `dense`
  /// sends them dense nevertheless. Without this call all buckets are dense. Sums of the previous
  /// step may still be in flight.
  void begin_step(int64_t step, bool dense = false);
  /// Reports that bucket `bucket` of this replica's gradient is complete. Replicas run in order;
  /// the buckets of one replica may come in any order. Never blocks.
  void ready(int local_replica, int bucket);
  /// Moves everything in flight forward. Never blocks; to be called between kernels.
  void poll() { communicator_.progress(); }
  /// Lets a thread that waits for this one take part in its sums. Call it from any thread.
  void help() { communicator_.work().help(); }
  /// Returns whether wait() would return at once. Never blocks.
  bool arrived(int bucket);
  /// Returns whether the sum of `bucket` has begun and wait() for it is still to come.
  bool is_due(int bucket) const {
    return folded_[static_cast<size_t>(bucket)] == map_.local_count();
  }
  /// Waits for the sum ahead of the update, when it is needed early; wait() must still follow.
  void look_forward(int bucket);
  /// Returns when the sum of `bucket` has arrived. Throws CommError after the time-out. CHECKs that
  /// ready() was called for all replicas.
  void wait(int bucket);
  /// Returns the sum of `bucket` over all replicas: layout().buckets[bucket].floats() floats at an
  /// address that never changes.
  const float* result(int bucket) const;

  int buckets() const { return static_cast<int>(layout_.buckets.size()); }
  int slots() const { return plan_.slots; }
  const BucketLayout& layout() const { return layout_; }
  const ReplicaMap& map() const { return map_; }
  /// Returns the name of the algorithm that sums `bucket`.
  const std::string& algorithm(int bucket) const { return sum(bucket).algorithm(); }
  /// Returns the operations of `bucket`, with the cost, the savings and the state of compression.
  BucketSum& sum(int bucket) const;
  /// Sums up all buckets since the construction.
  comm::CompressionReport compression_report() const;
  const ExchangeCounters& counters() const { return counters_; }

 private:
  float* slot_memory(int slot) const;
  void fold(int local_replica, const Bucket& bucket);
  void plan_sums(const ExchangeSettings& settings);
  std::vector<comm::Slice> my_parts() const;
  void plan_sum(int bucket, const ExchangeSettings& settings, bool shared);

  comm::Communicator& communicator_;
  ReplicaMap map_;
  BucketLayout layout_;
  comm::SlotPlan plan_;
  size_t stride_;                         // bytes from slot to slot
  std::unique_ptr<comm::Window> window_;  // the slots; outlives sums_
  std::unique_ptr<comm::Window>
      results_;              // the sums; in shared memory there is one copy on the node, at rank 0
  float* result_ = nullptr;  // at the beginning of the arena
  ExchangeCompression compression_;
  comm::CompressionSpec step_compression_;  // in use in this step
  uint64_t step_ = 0;
  std::unique_ptr<comm::NodeGroups> groups_;  // set where hitopk needs them
  std::vector<std::unique_ptr<BucketSum>> sums_;
  std::vector<int> folded_;  // local replicas ready this step, per bucket
  ExchangeCounters counters_;
};

}  // namespace tutti::exchange
