#include "tutti/backend/gpu/own/product_end.h"

#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"

namespace tutti::backend {

std::optional<ProductEnd> product_end_of(
    const std::optional<ops::ActivationAttributes>& activation) {
  if (!activation) return ProductEnd::none;
  switch (activation->kind) {
    case ops::ActivationKind::relu: return ProductEnd::relu;
    case ops::ActivationKind::leaky_relu: return ProductEnd::leaky_relu;
    case ops::ActivationKind::sigmoid: return ProductEnd::sigmoid;
    case ops::ActivationKind::tanh: return ProductEnd::tanh;
    default: return std::nullopt;
  }
}

ProductEndOnDevice::ProductEndOnDevice(const device::Device& device, const TensorDesc& y,
                                       ProductEnd end, float slope)
    : function_(device::function_named(
          device, y.dtype == DType::f32 ? "product_end.f32" : "product_end.bf16")),
      elements_(y.elements()), pack_(static_cast<int64_t>(16 / size_of(y.dtype))) {
  args_.channels = divisor(y.shape[1]);
  args_.end = end;
  args_.slope = slope;
}

void ProductEndOnDevice::run(device::Stream& stream, void* y, const float* bias) const {
  ProductEndArgs args = args_;
  args.y = y;
  args.bias = bias;
  args.packs = args.channels.value % pack_ == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
  args.threads = args.packs ? elements_ / pack_ : elements_;
  device::launch(stream, function_, {blocks_for(args.threads, function_.threads)}, args);
}

}  // namespace tutti::backend
