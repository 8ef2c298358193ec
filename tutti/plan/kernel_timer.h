#pragma once
// How long the candidates of one problem take, on random data. The operands are made once and serve
// all candidates.

#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti {

class KernelTimer {
 public:
  /// The request must outlive the timer.
  explicit KernelTimer(const KernelRequest& request) : request_(request) {}

  /// Best of a few runs, in seconds, single-threaded, operands as warm as a tile's are. Short runs
  /// are repeated for two milliseconds; one of 50 ms decides alone, and so does one that takes
  /// several times as long as `best`, the fastest candidate so far. One that is half as slow again
  /// as `best` is not repeated further.
  double seconds(const KernelCandidate& candidate, double best);

 private:
  struct Operand {
    TensorDesc desc;
    Buffer memory;
  };
  void* prepared(Operand& operand, const TensorDesc& desc);

  const KernelRequest& request_;
  std::vector<Operand> in_, out_;
};

}  // namespace tutti
