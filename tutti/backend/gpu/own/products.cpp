// Convolutions and dense layers as plain loops on the device: correct, and the same bits on every
// device but for sigmoid and tanh, and slow. Libraries of the device's maker are compared with
// them.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/backend/gpu/kernels/products.h"
#include "tutti/backend/gpu/own/block_counters.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/product_end.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"

namespace tutti::backend {
namespace {

/// The operand that a product makes from the two others.
enum class ProductMakes : uint8_t { y, x, w };

struct OwnProduct {
  ProductMakes makes;
  TensorDesc x, y;
  bool bias = false;
  ProductEnd end = ProductEnd::none;
  float slope = 0;
  ProductArgs args{};  ///< all that shapes determine
};

class ProductOnDevice final : public Kernel {
 public:
  ProductOnDevice(const OwnProduct& product, const device::Device& device)
      : makes_(product.makes), bias_(product.bias), args_(product.args) {
    const auto kernel = [&](std::string_view name) {
      return &device::function_named(device, fmt::format("{}.{}.{}", name, name_of(product.x.dtype),
                                                         name_of(product.y.dtype)));
    };
    const auto set_result = [&](const TensorDesc& result) {
      args_.elements = result.elements();
      blocks_ = blocks_for(args_.elements, kProductThreads);
      args_.positions = divisor(result.shape.elements_from(2));
    };
    switch (makes_) {
      case ProductMakes::y:
        main_ = kernel("product");
        set_result(product.y);
        break;
      case ProductMakes::x:
        main_ = kernel("product_data");
        set_result(product.x);
        break;
      case ProductMakes::w:
        main_ = kernel("product_weights");
        cut_into_slices();
        break;
    }
  }

  size_t workspace_bytes() const override {
    return args_.slices > 1 ? static_cast<size_t>(args_.slices) *
                                  static_cast<size_t>(args_.weights) * sizeof(double)
                            : 0;
  }
  size_t number_bytes() const override { return counters_.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override { counters_.write(to); }

  void run(const KernelArgs& args) override {
    ProductArgs a = args_;
    a.x = makes_ == ProductMakes::x ? args.out[0] : args.in[0];
    a.y = makes_ == ProductMakes::y ? args.out[0] : args.in[makes_ == ProductMakes::x ? 0 : 1];
    a.w = static_cast<float*>(makes_ == ProductMakes::w ? args.out[0] : args.in[1]);
    if (bias_) a.bias = static_cast<const float*>(args.in[2]);
    a.parts = static_cast<double*>(args.workspace);
    a.counters = counters_.in(args);
    device::launch(*args.stream, *main_, {blocks_}, a);
  }

 private:
  /// Cuts the sums into slices, a function of shapes alone: about as many threads as a large device
  /// runs at once.
  void cut_into_slices() {
    constexpr int32_t kThreadsWanted = 1 << 17;
    const int32_t wanted = std::clamp(kThreadsWanted / args_.weights, 1, args_.rows);
    args_.rows_of_slice = (args_.rows + wanted - 1) / wanted;
    args_.slices = (args_.rows + args_.rows_of_slice - 1) / args_.rows_of_slice;
    args_.span = std::min(args_.weights, kProductThreads);
    const unsigned groups = blocks_for(args_.weights, args_.span);
    blocks_ = groups * blocks_for(args_.slices, kProductThreads / args_.span);
    if (args_.slices > 1) counters_ = BlockCounters(groups);
  }

  ProductMakes makes_;
  bool bias_;
  ProductArgs args_;
  unsigned blocks_ = 0;
  BlockCounters counters_;  // for weights in slices
  const device::DeviceFunction* main_ = nullptr;
};

/// Sets the extents and steps of an activation [N, C, up to three dimensions].
void describe(const TensorDesc& d, int32_t (&extent)[3], int64_t (&step)[5]) {
  const Strides strides = strides_of(d);
  const int missing = 5 - d.shape.rank();
  std::ranges::fill(extent, 1);
  step[0] = strides[0];
  step[1] = strides[1];
  for (int i = 2; i < d.shape.rank(); ++i) {
    extent[i + missing - 2] = static_cast<int32_t>(d.shape[i]);
    step[i + missing] = strides[static_cast<size_t>(i)];
  }
}

/// Returns the arguments of a convolution x, w -> y.
ProductArgs arguments_of(const ops::ConvAttributes& conv, const TensorDesc& x, const Shape& w,
                         const TensorDesc& y) {
  ProductArgs a{};
  a.groups = static_cast<int32_t>(conv.groups);
  a.inputs = static_cast<int32_t>(w[1]);
  a.outputs = static_cast<int32_t>(w[0] / conv.groups);
  a.weights = static_cast<int32_t>(w.elements());
  describe(x, a.x_extent, a.x_step);
  describe(y, a.y_extent, a.y_step);
  a.rows = static_cast<int32_t>(x.shape[0]) * a.y_extent[0] * a.y_extent[1];
  for (const auto values : {&a.window, &a.stride, &a.dilation}) std::ranges::fill(*values, 1);
  for (int d = 0; d < conv.spatial; ++d) {
    const int to = 3 - conv.spatial + d;
    const auto from = static_cast<size_t>(d);
    a.window[to] = static_cast<int32_t>(w[d + 2]);
    a.stride[to] = static_cast<int32_t>(conv.stride[from]);
    a.dilation[to] = static_cast<int32_t>(conv.dilation[from]);
    a.pad[to] = static_cast<int32_t>(conv.pad_low[from]);
  }
  return a;
}

std::string refusal_of_product(const KernelCandidate& c, const OwnProduct& p, const TensorDesc& w) {
  constexpr int64_t kMostCount = int64_t{1} << 30;  // kernels count in 31 bits what is named below
  for (const TensorDesc* d : {&p.x, &p.y}) {
    if (d->dtype != DType::f32 && d->dtype != DType::bf16)
      return fmt::format("no products of {}", name_of(d->dtype));
    if (d->shape[0] * std::max(d->shape[1], d->shape.elements_from(2)) > kMostCount)
      return fmt::format("{} has more than {} planes or positions", d->to_string(), kMostCount);
  }
  if (w.elements() > kMostCount)
    return fmt::format("{} has more than {} weights", w.to_string(), kMostCount);
  if (w.dtype != DType::f32 || !w.layout.is_plain())
    return fmt::format("weights are {}, plain f32 is needed", w.to_string());
  return refusal_of_blocks(c);
}

/// Makes the candidate of a convolution with weights `w`.
KernelCandidate conv_candidate(KernelCandidate c, OwnProduct p, const ops::ConvAttributes& conv,
                               const TensorDesc& w, device::Device& device) {
  c.speed = KernelSpeed::slow;
  c.refusal = refusal_of_product(c, p, w);
  if (!c.refusal.empty()) return c;
  p.args = arguments_of(conv, p.x, w.shape, p.y);
  p.args.end = p.end;
  p.args.slope = p.slope;
  c.make = [p, &device] { return std::make_unique<ProductOnDevice>(p, device); };
  return c;
}

KernelCandidate own_conv(const KernelRequest& r, const ops::Conv& op, device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  OwnProduct p{.makes = ProductMakes::y, .x = c.in[0], .y = c.out[0], .bias = op.bias()};
  const std::optional<ProductEnd> end = product_end_of(op.activation());
  if (!end) {
    c.refusal = fmt::format("no product ends in {}", op.activation()->to_string());
    return c;
  }
  p.end = *end;
  if (op.activation()) p.slope = op.activation()->slope;
  const TensorDesc w = c.in[1];
  return conv_candidate(std::move(c), p, op.conv(), w, device);
}

/// The data gradient of a convolution, or a transposed one.
KernelCandidate own_conv_data(const KernelRequest& r, const ops::ConvAttributes& conv, bool bias,
                              device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  const OwnProduct p{.makes = ProductMakes::x, .x = c.out[0], .y = c.in[0], .bias = bias};
  const TensorDesc w = c.in[1];
  return conv_candidate(std::move(c), p, conv, w, device);
}

KernelCandidate own_conv_weights(const KernelRequest& r, const ops::ConvBackwardWeights& op,
                                 device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  const OwnProduct p{.makes = ProductMakes::w, .x = c.in[0], .y = c.in[1]};
  const TensorDesc w = c.out[0];
  return conv_candidate(std::move(c), p, op.conv(), w, device);
}

/// Returns x as [N, C, positions] in a layout of its own, such that a window over all positions has
/// its features in the order of logical indices; nothing if there is no such form.
std::optional<TensorDesc> dense_input(const TensorDesc& x) {
  const int64_t features = x.shape.elements_from(1);
  if (x.layout.is_plain() || x.shape.rank() < 3)
    return TensorDesc{x.dtype, {x.shape[0], features, 1}, Layout::plain()};
  if (x.layout != Layout::channels_last(x.shape.rank())) return std::nullopt;
  return TensorDesc{
      x.dtype, {x.shape[0], x.shape[1], features / x.shape[1]}, Layout::channels_last(3)};
}

/// Makes the candidate of a dense layer between x and y with weights `w`: a convolution with one
/// position, whose window is a sample.
KernelCandidate dense_candidate(KernelCandidate c, OwnProduct p, const TensorDesc& w,
                                device::Device& device) {
  const std::optional<TensorDesc> x = dense_input(p.x);
  if (!x) {
    c.refusal = fmt::format("{} is neither plain nor channels last", p.x.to_string());
    return c;
  }
  p.x = *x;
  p.y.shape = {p.y.shape[0], p.y.shape[1], 1};
  const TensorDesc window{w.dtype, {w.shape[0], x->shape[1], x->shape[2]}, w.layout};
  return conv_candidate(std::move(c), p, {.spatial = 1}, window, device);
}

KernelCandidate own_dense(const KernelRequest& r, const ops::Dense& op, device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  const OwnProduct p{.makes = ProductMakes::y, .x = c.in[0], .y = c.out[0], .bias = op.bias()};
  const TensorDesc w = c.in[1];
  return dense_candidate(std::move(c), p, w, device);
}

KernelCandidate own_dense_data(const KernelRequest& r, const ops::DenseBackwardData&,
                               device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  const OwnProduct p{.makes = ProductMakes::x, .x = c.out[0], .y = c.in[0]};
  const TensorDesc w = c.in[1];
  return dense_candidate(std::move(c), p, w, device);
}

KernelCandidate own_dense_weights(const KernelRequest& r, const ops::DenseBackwardWeights&,
                                  device::Device& device) {
  KernelCandidate c = own_candidate(r, "products");
  const OwnProduct p{.makes = ProductMakes::w, .x = c.in[0], .y = c.in[1]};
  const TensorDesc w = c.out[0];
  return dense_candidate(std::move(c), p, w, device);
}

}  // namespace

void register_products(OwnKernels& table) {
  table.add<ops::Conv>(own_conv);
  table.add<ops::ConvBackwardData>(
      [](const KernelRequest& r, const ops::ConvBackwardData& op, device::Device& device) {
        return own_conv_data(r, op.conv(), false, device);
      });
  table.add<ops::ConvTranspose>(
      [](const KernelRequest& r, const ops::ConvTranspose& op, device::Device& device) {
        return own_conv_data(r, op.conv(), op.bias(), device);
      });
  table.add<ops::ConvBackwardWeights>(own_conv_weights);
  table.add<ops::Dense>(own_dense);
  table.add<ops::DenseBackwardData>(own_dense_data);
  table.add<ops::DenseBackwardWeights>(own_dense_weights);
}

}  // namespace tutti::backend
