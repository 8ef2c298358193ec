// Pooling over windows and resizing on a device.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "tutti/backend/gpu/kernels/pools.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/resize.h"

namespace tutti::backend {
namespace {

/// Returns why the operands do not fit; empty if they do: one type, besides winners, and one
/// layout, plain or channels last.
std::string refusal_of_pooled(const KernelCandidate& c) {
  const TensorDesc& first = c.in[0];
  if (first.dtype != DType::f32 && first.dtype != DType::bf16)
    return fmt::format("no pooling of {}", name_of(first.dtype));
  for (const auto* side : {&c.in, &c.out})
    for (const TensorDesc& d : *side) {
      const int64_t block = d.layout.channel_block(d.shape);
      if (block != 1 && block != d.shape[1])
        return fmt::format("{} is neither plain nor channels last", d.to_string());
      if (d.layout != first.layout)
        return fmt::format("{} and {} differ in their layouts", d.to_string(), first.to_string());
      if (d.dtype != first.dtype && d.dtype != DType::u8)
        return fmt::format("{} and {} differ in their types", d.to_string(), first.to_string());
      if (d.shape.elements_from(1) > std::numeric_limits<int32_t>::max())
        return fmt::format("{} has too many elements in a sample", d.to_string());
    }
  return {};
}

/// The places of x and y, and a function for them.
struct Pooled {
  PoolPlaces places;
  std::string form;  ///< ends the function's name: ".bf16.packs8"
};

/// Spreads numbers by spatial dimension over three, the last ones.
template <class From>
void fill_spatial(int32_t (&to)[3], int spatial, const From& from, int32_t missing) {
  for (int d = 0; d < 3; ++d) {
    const int at = d - (3 - spatial);
    to[d] = at < 0 ? missing : static_cast<int32_t>(from[static_cast<size_t>(at)]);
  }
}

/// Returns the side of an activation whose planes have so many channels.
PoolSide pool_side(const Shape& shape, int64_t channels) {
  PoolSide side{};
  fill_spatial(side.extent, shape.rank() - 2, std::span(shape.begin() + 2, shape.end()), 1);
  side.plane = shape.elements_from(2) * channels;
  int64_t step = channels;
  for (int d = 2; d >= 0; --d) {
    side.step[d] = static_cast<int32_t>(step);
    step *= side.extent[d];
  }
  return side;
}

Pooled pooled(const TensorDesc& x, const TensorDesc& y, const TensorDesc& result) {
  const auto whole = static_cast<int64_t>(16 / size_of(x.dtype));
  const int64_t channels = x.layout.is_plain() ? 1 : x.shape[1],
                pack = channels % whole == 0 ? whole : 1;
  return {.places = {.x = pool_side(x.shape, channels),
                     .y = pool_side(y.shape, channels),
                     .count = result.elements() / pack,
                     .packs = static_cast<int32_t>(channels / pack)},
          .form = fmt::format(".{}.packs{}", name_of(x.dtype), pack)};
}

device::Dim3 pool_grid(const PoolPlaces& places) {
  return {.x = blocks_for(places.count, kPoolThreads)};
}

/// Returns whether windows cover x and each element is in one.
bool windows_apart(const PoolArgs& a) {
  bool apart = true;
  for (int d = 0; d < 3; ++d)
    apart &= a.stride[d] == a.kernel[d] && a.low[d] == 0 &&
             a.places.y.extent[d] * a.kernel[d] == a.places.x.extent[d];
  return apart;
}

class OwnPoolKernel final : public Kernel {
 public:
  /// `back`: the gradient, from y to x.
  OwnPoolKernel(const ops::PoolAttributes& a, const TensorDesc& x, const TensorDesc& y, bool back,
                const device::Device& device)
      : max_(a.kind == ops::PoolKind::max), back_(back) {
    Pooled p = pooled(x, y, back ? x : y);
    args_.places = p.places;
    fill_spatial(args_.kernel, a.spatial, a.kernel, 1);
    fill_spatial(args_.stride, a.spatial, a.stride, 1);
    fill_spatial(args_.low, a.spatial, a.pad_low, 0);
    args_.index_step[2] = 1;
    for (int d = 1; d >= 0; --d)
      args_.index_step[d] = args_.index_step[d + 1] * args_.kernel[d + 1];
    for (int d = 0; d < 3; ++d) {
      // A window is never further outside.
      const int32_t outside = a.count_include_pad ? args_.kernel[d] : 0;
      args_.counted_low[d] = -outside;
      args_.counted_high[d] = p.places.x.extent[d] + outside;
    }
    const bool apart = back && windows_apart(args_);
    if (apart) args_.places = pooled(x, y, y).places;
    function_ = &device::function_named(
        device, fmt::format("pool_{}{}{}{}", max_ ? "max" : "average", back ? "_grad" : "",
                            apart ? "_apart" : "", p.form));
  }
  void run(const KernelArgs& args) override {
    PoolArgs pool = args_;
    pool.from = args.in[0];
    pool.to = args.out[0];
    if (max_) pool.winners = static_cast<uint8_t*>(back_ ? args.in[1] : args.out[1]);
    device::launch(*args.stream, *function_, pool_grid(pool.places), pool);
  }

 private:
  bool max_, back_;
  PoolArgs args_{};
  const device::DeviceFunction* function_;
};

class OwnResizeKernel final : public Kernel {
 public:
  /// `back`: the gradient, from y to x.
  OwnResizeKernel(const ops::ResizeAttributes& a, const TensorDesc& x, const TensorDesc& y,
                  bool back, const device::Device& device) {
    const Pooled p = pooled(x, y, back ? x : y);
    const int spatial = x.shape.rank() - 2;
    args_.places = p.places;
    fill_spatial(args_.factor, spatial, a.factor, 1);
    fill_spatial(args_.first, spatial, a.first, 0);
    function_ =
        &device::function_named(device, fmt::format("resize{}{}", back ? "_grad" : "", p.form));
  }
  void run(const KernelArgs& args) override {
    ResizeArgs resize = args_;
    resize.from = args.in[0];
    resize.to = args.out[0];
    device::launch(*args.stream, *function_, pool_grid(resize.places), resize);
  }

 private:
  ResizeArgs args_{};
  const device::DeviceFunction* function_;
};

/// Returns the candidate K(attributes, x, y, back, device).
template <class K, class Attributes>
KernelCandidate own_pooling(const KernelRequest& r, const Attributes& a, bool back,
                            device::Device& device) {
  KernelCandidate c = own_candidate(r, "pools");
  c.refusal = refusal_of_pooled(c);
  if (c.refusal.empty())
    c.make = [a, x = back ? r.out[0] : r.in[0], y = back ? r.in[0] : r.out[0], back, &device] {
      return std::make_unique<K>(a, x, y, back, device);
    };
  return c;
}

}  // namespace

void register_pools(OwnKernels& table) {
  table.add<ops::Pool>([](const KernelRequest& r, const ops::Pool& op, device::Device& device) {
    return own_pooling<OwnPoolKernel>(r, op.pool(), false, device);
  });
  table.add<ops::PoolGrad>(
      [](const KernelRequest& r, const ops::PoolGrad& op, device::Device& device) {
        return own_pooling<OwnPoolKernel>(r, op.pool(), true, device);
      });
  table.add<ops::Resize>([](const KernelRequest& r, const ops::Resize& op, device::Device& device) {
    return own_pooling<OwnResizeKernel>(r, op.resize(), false, device);
  });
  table.add<ops::ResizeGrad>(
      [](const KernelRequest& r, const ops::ResizeGrad& op, device::Device& device) {
        return own_pooling<OwnResizeKernel>(r, op.resize(), true, device);
      });
}

}  // namespace tutti::backend
