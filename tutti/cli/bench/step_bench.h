#pragma once
// Whole training steps on random data that is already in memory: what `tutti bench step` times.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// The trainer's own step with one replica on each rank, or on those of its parts, and a batch for
/// it. Not thread-safe.
class StepBench {
 public:
  /// Collective. Throws as compile_network does.
  StepBench(const NetworkSpec& spec, const ExchangeSettings& exchange, const Backend& backend,
            const PartGrid& grid, comm::Communicator& communicator);

  /// Collective. One step; returns the seconds it took on this rank.
  double step();

  int replicas() const { return grid_.groups(); }
  const Network& network() const { return step_.network(); }
  Executor& executor() { return step_.executor(); }
  /// Of the last step, those of its update.
  double update_seconds() const { return update_seconds_; }
  /// Seconds of all steps so far in which this rank waited for others.
  double exposed_seconds() const {
    return step_.exchange().exposed_seconds() + parts_exposed_seconds();
  }
  /// Of these, for other parts of its samples.
  double parts_exposed_seconds() const { return step_.parts().exposed_seconds(); }
  /// Collective. Who waited for whom in the steps since the last call, of at most kStepsCompared.
  comm::ArrivalSummary arrivals() { return step_.exchange().arrivals().collect(); }
  /// Forward, backward and update of one sample.
  double flop_per_image() const;

 private:
  static constexpr int kStepsCompared = 1024;
  const PartGrid grid_;
  TrainingStep step_;
  std::vector<Buffer> tensors_;
  std::vector<void*> batch_;
  int64_t steps_ = 0;
  double update_seconds_ = 0;
};

}  // namespace tutti
