#pragma once
// StageTurns: the local turns of a rank that is a stage of a pipeline. Forward passes come in the
// order of turns, and so do backward passes: the gradient is the sum that a rank with all layers
// takes of the same micro-batches. A turn that is under way has an arena of results of its own.

#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network/network.h"
#include "tutti/train/step/step_exchange.h"

namespace tutti {

/// Not thread-safe; all of what it is given must outlive it.
class StageTurns {
 public:
  /// `turns`: of a step. As many may be under way as the executor has arenas.
  StageTurns(const Network& network, Executor& executor, StepExchange& exchange, int turns);

  /// What earlier stages send for the first turns may come from now on.
  void begin_step();
  /// The forward pass of a turn, in their order; of the last stage its backward pass, too. Results
  /// are there until go_on(). `batch` is needed during the call alone.
  void run(int turn, const StepInfo& info, const ReplicaState& replica,
           std::span<void* const> batch);
  /// After run(): the backward pass of the oldest turn, if there is no arena for another one.
  void go_on();
  /// The backward passes that are left, and the messages that are under way.
  void end_step();

 private:
  /// A turn that is under way, by its arena.
  struct UnderWay {
    StepInfo info;
    ReplicaState replica;
    std::vector<Buffer> inputs;  // what the backward pass reads; none where that comes at once
  };
  UnderWay& arena_of(int turn);
  bool is_last() const { return turning_ == bands_; }
  void go_back(int turn);

  const Network& network_;
  Executor& executor_;
  StepExchange& exchange_;
  const int turns_;
  const size_t turning_, bands_;  // where the backward pass begins, and ends
  std::vector<UnderWay> under_way_;
  int run_ = 0, back_ = 0;  // turns of the step that have been run, and have gone back
};

}  // namespace tutti
