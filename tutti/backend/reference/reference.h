#pragma once
// The oracle: every op as plain loops in double precision, for every layout and type. Slow on
// purpose; what other backends are compared with. Kernels run any tile on any thread; ops that walk
// as a whole are done by part 0 alone.

#include "tutti/backend/backend.h"

namespace tutti {

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  /// One candidate, which wants free operands plain and f32; a refusal for communication.
  std::vector<KernelCandidate> candidates(const KernelRequest& request) const override;
  /// Plain, channels last, and blocks of 16 channels: all that Layout offers activations.
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override;
};

}  // namespace tutti
