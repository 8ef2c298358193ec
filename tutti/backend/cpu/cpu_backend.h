#pragma once
// The CPU backend: kernels of oneDNN and own ones.

#include "tutti/backend/backend.h"

namespace tutti::backend {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::vector<KernelCandidate> candidates(const KernelRequest& request) const override;
  /// Images and volumes: blocks of 16 channels where they fit, and channels last; below 16 channels
  /// plain and channels last. Sequences: channels last. Everything else plain.
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override;
  /// Returns the size of this machine's second-level cache; 1 MiB if the system does not report it.
  size_t tile_bytes() const override;
};

}  // namespace tutti::backend
