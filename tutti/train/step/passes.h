#pragma once
// Passes: the forward and backward passes of a step's micro-batches on this rank. A rank with all
// layers runs both at once. A rank that is a stage of a pipeline runs forward passes in the
// order of micro-batches, and backward passes in that order, too: so the gradient equals the sum
// that a rank with all layers computes for the same micro-batches. Each micro-batch in flight has
// an arena of results.

#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/network/network.h"
#include "tutti/train/step/step_exchange.h"

namespace tutti::train {

/// Not thread-safe; all arguments must outlive this object.
class Passes {
 public:
  /// `stages`: number of ranks that share the layers. `batches`: number per step; as many may be in
  /// flight as the executor has arenas.
  Passes(const Network& network, plan::Executor& executor, StepExchange& exchange, int stages,
         int batches);

  /// Begins a gradient: messages of earlier stages for the first micro-batches may arrive from now
  /// on.
  void begin();
  /// Runs the forward pass of a micro-batch, in their order, and its backward pass if this rank has
  /// the last layer. `place` is its index in the gradient. Results remain until go_on(). `batch` is
  /// only needed during the call.
  void run(int place, const backend::StepInfo& info, const plan::ReplicaState& replica,
           std::span<void* const> batch);
  /// Call after run(): runs the backward pass of the oldest micro-batch if no arena is free for
  /// another.
  void go_on();
  /// Runs the remaining backward passes, and waits for messages in flight.
  void end();

  /// Sets the parameters that the kernels' packed copies belong to; null: the copies are out of
  /// date.
  void note_packed(const void* parameters) { packed_ = parameters; }

 private:
  /// A micro-batch in flight, by its arena.
  struct UnderWay {
    backend::StepInfo info;
    plan::ReplicaState replica;
    std::vector<device::Buffer> inputs;  // for a later backward pass; else empty
  };
  void run_whole(int place, const backend::StepInfo& info, plan::ReplicaState replica,
                 std::span<void* const> batch);
  UnderWay& arena_of(int place);
  bool is_last() const { return turning_ == bands_; }
  void go_back(int place);

  const Network& network_;
  plan::Executor& executor_;
  StepExchange& exchange_;
  const bool whole_;  // this rank has all layers
  const int batches_;
  const size_t turning_, bands_;  // where the backward pass begins; the end
  std::vector<UnderWay> under_way_;
  int run_ = 0, back_ = 0;  // micro-batches run forward, and backward
  const void* packed_ = nullptr;
};

}  // namespace tutti::train
