#pragma once
// StageSum: the gradient of a parameter that several stages of a pipeline have, such as an
// embedding that is the output layer, too. Each has summed its part over its turns; all add these
// parts in the order of stages, and so update alike. Parts travel plain: kernels of stages may want
// other layouts.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/plan/variables.h"
#include "tutti/split/grid.h"
#include "tutti/split/stages.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class StageSum {
 public:
  /// `variable`: as this stage has it; outlives this.
  StageSum(comm::Communicator& communicator, const PartGrid& grid, const SharedParameter& shared,
           const Variable& variable);

  /// Sends this stage's part, if none of these has yet in this step. `own`: its sum, laid out as
  /// the variable; it stays as it is until wait(). Never blocks.
  void begin(const float* own);
  bool under_way() const { return under_way_; }
  /// Whether wait() would return at once. Never blocks.
  bool arrived(const float* own);
  /// The sum of all, laid out as the variable, until the next step. Throws CommError after the
  /// time-out.
  const std::byte* wait(const float* own);
  /// Seconds blocked in wait(), since the construction.
  double exposed_seconds() const { return exposed_; }

 private:
  const Variable& variable_;
  size_t me_ = 0;                          // among those who have it
  std::vector<std::vector<float>> parts_;  // of each, plain
  std::vector<std::unique_ptr<comm::MessageOperation>> messages_;
  Buffer sum_;
  bool under_way_ = false;
  double exposed_ = 0;
};

}  // namespace tutti
