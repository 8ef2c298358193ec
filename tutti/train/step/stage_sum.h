#pragma once
// StageSum: the gradient of a parameter that several stages of a pipeline have, such as an
// embedding that is also the output layer. Each stage has summed its part over its micro-batches;
// all stages add these parts in the order of stages, and so make the same update. Parts are sent in
// the plain layout: kernels of stages may want other layouts.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/variables.h"
#include "tutti/split/grid.h"
#include "tutti/split/stages.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class StageSum {
 public:
  /// `variable` is this stage's; it must outlive this object.
  StageSum(comm::Communicator& communicator, const split::PartGrid& grid,
           const split::SharedParameter& shared, const plan::Variable& variable);

  /// Sends this stage's part, unless it was sent in this step already. `own` is its sum, laid out
  /// like the variable, and must stay unchanged until wait(). Never blocks.
  void begin(const float* own);
  bool under_way() const { return under_way_; }
  /// Returns whether wait() would return at once. Never blocks.
  bool arrived(const float* own);
  /// Returns the sum over all stages, laid out like the variable, valid until the next step. Throws
  /// CommError after the time-out.
  const std::byte* wait(const float* own);
  /// Returns the seconds blocked in wait(), since the construction.
  double exposed_seconds() const { return exposed_; }

 private:
  const plan::Variable& variable_;
  size_t me_ = 0;                          // index among the stages that have it
  std::vector<std::vector<float>> parts_;  // each stage's part, plain
  std::vector<std::unique_ptr<comm::MessageOperation>> messages_;
  device::Buffer sum_;
  bool under_way_ = false;
  double exposed_ = 0;
};

}  // namespace tutti::train
