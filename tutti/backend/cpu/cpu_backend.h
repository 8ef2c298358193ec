#pragma once
// The CPU backend: oneDNN for convolutions, own kernels for the rest.

#include "tutti/backend/backend.h"

namespace tutti {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::vector<KernelCandidate> candidates(const KernelRequest& request) const override;
  /// Images and volumes: blocks of 16 channels where they fill, channels last, plain; everything
  /// else plain.
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override;
  /// The size of this machine's second-level cache; 1 MiB if the system does not say.
  size_t tile_bytes() const override;
};

}  // namespace tutti
