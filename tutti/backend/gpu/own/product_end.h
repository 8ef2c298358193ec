#pragma once
// Bias and activation, in place: the end of a product whose kernel has none.

#include <optional>

#include "tutti/backend/gpu/kernels/products.h"
#include "tutti/device/device.h"
#include "tutti/ops/activation.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

/// Returns the activation that a product ends in; nothing for one that the kernels lack.
std::optional<ProductEnd> product_end_of(
    const std::optional<ops::ActivationAttributes>& activation);

/// y = f(y + bias), with one number of the bias for each channel. Bias and sum are f32. The device
/// outlives it.
class ProductEndOnDevice {
 public:
  /// y is f32 or bf16, [N, C, ...] with the channels innermost in memory.
  ProductEndOnDevice(const device::Device& device, const TensorDesc& y, ProductEnd end,
                     float slope);
  /// Puts it on the stream. `bias`: [C], or null for none.
  void run(device::Stream& stream, void* y, const float* bias) const;

 private:
  const device::DeviceFunction& function_;
  int64_t elements_, pack_;
  ProductEndArgs args_{};
};

}  // namespace tutti::backend
