#pragma once
// The oracle: every op as plain loops in double precision, for every layout and type. It is
// deliberately slow; other backends are compared with it. Kernels run any tile on any thread; ops
// that walk as a whole are done by part 0 alone.

#include "tutti/backend/backend.h"

namespace tutti::backend {

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  /// Returns one candidate, which wants free operands plain and f32; a refusal for communication.
  std::vector<KernelCandidate> candidates(const KernelRequest& request) const override;
  /// Returns plain, channels last, and blocks of 16 channels: all layouts that Layout offers for
  /// activations.
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override;
};

}  // namespace tutti::backend
