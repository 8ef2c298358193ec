#pragma once
// Measures how long the candidates of one problem take, on random data. The operands are made once
// and serve all candidates.

#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::plan {

class KernelTimer {
 public:
  /// The request must outlive the timer.
  explicit KernelTimer(const backend::KernelRequest& request) : request_(request) {}

  /// Returns the best of a few runs, in seconds, single-threaded, with operands as warm as a
  /// tile's. Short runs are repeated for two milliseconds. One run is enough if it takes 50 ms, or
  /// several times as long as `best`, the fastest candidate so far. A candidate that takes half as
  /// long again as `best` is not repeated further.
  double seconds(const backend::KernelCandidate& candidate, double best);

 private:
  struct Operand {
    TensorDesc desc;
    device::Buffer memory;
  };
  void* prepared(Operand& operand, const TensorDesc& desc);

  const backend::KernelRequest& request_;
  std::vector<Operand> in_, out_;
};

}  // namespace tutti::plan
