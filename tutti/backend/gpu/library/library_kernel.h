#pragma once
// The kernel of a product that a library computes: copies of operands that lie otherwise than the
// library takes them, its call, and the bias and activation that it lacks.

#include <memory>
#include <optional>

#include "tutti/backend/gpu/library/library_product.h"
#include "tutti/backend/gpu/own/box_move.h"
#include "tutti/backend/gpu/own/product_end.h"

namespace tutti::backend {

class LibraryKernel final : public Kernel {
 public:
  /// The product is one without a refusal; the call needs `workspace_bytes` of workspace. The
  /// device outlives the kernel.
  LibraryKernel(const LibraryProduct& product, std::unique_ptr<device::LibraryCall> call,
                size_t workspace_bytes, const device::Device& device);

  size_t workspace_bytes() const override { return workspace_bytes_; }
  /// Throws DeviceError if the library cannot.
  void run(const KernelArgs& args) override;

 private:
  /// A copy of an operand in the workspace.
  struct Copy {
    BoxMove move;
    size_t at;  ///< bytes
  };
  /// Returns the copy between two descs, where one is needed; `copy` is the one in the workspace.
  std::optional<Copy> copy_of(const device::Device& device, const TensorDesc& from,
                              const TensorDesc& to, const TensorDesc& copy);

  std::unique_ptr<device::LibraryCall> call_;
  size_t workspace_bytes_;  ///< the call's, then the copies'
  std::optional<Copy> first_, second_, result_;
  std::optional<ProductEndOnDevice> end_;
  bool bias_in_call_, bias_after_;
};

}  // namespace tutti::backend
