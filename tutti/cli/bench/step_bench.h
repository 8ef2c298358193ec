#pragma once
// Whole training steps on random data that is already in memory, which `tutti bench step` times.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/train/step/training_step.h"

namespace tutti::cli {

/// The trainer's own step with one replica on each rank, or on the ranks of its parts, and a batch
/// for it. Not thread-safe.
class StepBench {
 public:
  /// Collective. Throws as compile_network does.
  StepBench(const train::NetworkSpec& spec, const exchange::ExchangeSettings& exchange,
            const backend::Backend& backend, const split::PartGrid& grid,
            comm::Communicator& communicator);

  /// Runs one step and returns the seconds it took on this rank, on a device until its end.
  /// Collective.
  double step();

  int replicas() const { return grid_.groups(); }
  const train::Network& network() const { return step_.network(); }
  plan::Executor& executor() { return step_.executor(); }
  /// Returns the seconds of the last step's update.
  double update_seconds() const { return update_seconds_; }
  /// Returns the seconds of all steps so far in which this rank waited for others.
  double exposed_seconds() const {
    return step_.exchange().exposed_seconds() + parts_exposed_seconds();
  }
  /// Returns how much of this was waiting for other parts of its samples.
  double parts_exposed_seconds() const { return step_.parts().exposed_seconds(); }
  /// Returns which ranks waited for which in the steps since the last call, at most kStepsCompared.
  /// Collective.
  comm::ArrivalSummary arrivals() { return step_.exchange().arrivals().collect(); }
  /// Counts forward, backward and update of one sample.
  double flop_per_image() const;

 private:
  static constexpr int kStepsCompared = 1024;
  const split::PartGrid grid_;
  train::TrainingStep step_;
  std::vector<device::Buffer> tensors_;
  std::vector<void*> batch_;
  int64_t steps_ = 0;
  double update_seconds_ = 0;
};

}  // namespace tutti::cli
