#pragma once
// Passes: the forward and backward passes of a step's micro-batches on this rank. A rank that has
// all layers takes both at once. A rank that is a stage of a pipeline takes forward passes in the
// order of micro-batches, and backward passes too: so the gradient is the sum that a rank with all
// layers takes of the same micro-batches. Each micro-batch under way has an arena of results.

#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network/network.h"
#include "tutti/train/step/step_exchange.h"

namespace tutti {

/// Not thread-safe; all of what it is given must outlive it.
class Passes {
 public:
  /// `stages`: ranks that share the layers. `batches`: of a step; as many may be under way as the
  /// executor has arenas.
  Passes(const Network& network, Executor& executor, StepExchange& exchange, int stages,
         int batches);

  /// Begins a gradient: what earlier stages send for the first micro-batches may come from now on.
  void begin();
  /// The forward pass of a micro-batch, in their order, and its backward pass where this rank has
  /// the last layer. `place`: which one of the gradient it is. Results are there until go_on().
  /// `batch` is needed during the call alone.
  void run(int place, const StepInfo& info, const ReplicaState& replica,
           std::span<void* const> batch);
  /// After run(): the backward pass of the oldest micro-batch, if there is no arena for another.
  void go_on();
  /// The backward passes that are left, and the messages that are under way.
  void end();

  /// The parameters of which the kernels' packed copies are; null: of none that are still there.
  void note_packed(const void* parameters) { packed_ = parameters; }

 private:
  /// A micro-batch that is under way, by its arena.
  struct UnderWay {
    StepInfo info;
    ReplicaState replica;
    std::vector<Buffer> inputs;  // what the backward pass reads; none where that comes at once
  };
  void run_whole(int place, const StepInfo& info, ReplicaState replica,
                 std::span<void* const> batch);
  UnderWay& arena_of(int place);
  bool is_last() const { return turning_ == bands_; }
  void go_back(int place);

  const Network& network_;
  Executor& executor_;
  StepExchange& exchange_;
  const bool whole_;  // this rank has all layers
  const int batches_;
  const size_t turning_, bands_;  // where the backward pass begins, and ends
  std::vector<UnderWay> under_way_;
  int run_ = 0, back_ = 0;  // micro-batches that have been run, and have gone back
  const void* packed_ = nullptr;
};

}  // namespace tutti
