#pragma once
// StepExchange: everything that one training step exchanges with other ranks, tied to an executor: sums of gradients, and where updates are
// sharded the new weights and the norms.
//
//   for each local replica i: bind begin(i) as its gradients, run it; then end_of_backward(), and the executor's update()

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/parallel/exchange.h"
#include "tutti/parallel/sharded_update.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class StepExchange {
 public:
  /// Collective. Communicator and network must outlive it.
  StepExchange(comm::Communicator& communicator, const ReplicaMap& map, const Network& network, const ExchangeSettings& settings);

  /// Where the parameters lie: memory that ranks share, or null where each has its own and may put it anywhere.
  std::byte* parameters() const { return weights_ ? weights_->data() : nullptr; }
  /// Whether this rank is to fill the parameters at the start; the others see its values after the next barrier.
  bool fills_parameters() const { return !weights_ || weights_->mine(); }
  /// Makes `executor` exchange through this, for the local replica last given to begin(). `on_ready`: told of each bucket that a local
  /// replica has produced, before it leaves.
  void attach(Executor& executor, std::function<void(int local_replica, int bucket)> on_ready = {});
  /// Around each step's runs; begin() returns the gradient arena of the replica.
  float* begin(int local_replica);
  void end_of_backward();

  /// Collective. Every rank's shards of the optimizer state to rank 0; nothing to do where updates are not sharded. `state`: the arena of
  /// the network's variables, always the same one.
  void collect_state(std::byte* state);

  const GradientExchange& gradients() const { return gradients_; }
  /// Seconds in which this rank waited for others, since the construction.
  double exposed_seconds() const { return gradients_.counters().exposed_seconds + (shards_ ? shards_->exposed_seconds() : 0); }

 private:
  void plan_state(std::byte* state);

  comm::Communicator& communicator_;
  const Network& network_;
  GradientExchange gradients_;
  std::optional<SharedWeights> weights_;  // where updates are sharded
  std::optional<ShardedUpdate> shards_;
  std::vector<std::unique_ptr<comm::CollectiveOperation>> state_;  // planned for the first checkpoint
  int local_ = 0;
};

}  // namespace tutti
