#include "tutti/ops/pool.h"

#include <limits>

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

constexpr int64_t kMostPlaces = 256;  // positions in a window, which a u8 can number

}  // namespace

std::string PoolAttributes::to_string() const {
  std::string text = fmt::format(
      "{} {} stride {} pad {}", kind == PoolKind::max ? "max" : "average",
      extents_text(kernel, spatial), extents_text(stride, spatial), extents_text(pad_low, spatial));
  if (pad_high != pad_low) text += "," + extents_text(pad_high, spatial);
  if (kind == PoolKind::average && !count_include_pad) text += " exclude_pad";
  return text;
}

Shape pool_output_shape(const PoolAttributes& a, const Shape& x) {
  require(a.spatial == 2 || a.spatial == 3,
          "pool: {} spatial dimensions asked for, 2 or 3 are supported", a.spatial);
  require(x.rank() == a.spatial + 2, "pool: x {} needs {} dimensions", x, a.spatial + 2);
  Shape y = x;
  for (int d = 0; d < a.spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    require(a.kernel[i] >= 1 && a.stride[i] >= 1, "pool: kernel and stride are at least 1, met {}",
            a.to_string());
    require(a.pad_low[i] >= 0 && a.pad_high[i] >= 0 && a.pad_low[i] < a.kernel[i] &&
                a.pad_high[i] < a.kernel[i],
            "pool: padding must be less than the kernel, met {}", a.to_string());
    const int64_t room = x[d + 2] + a.pad_low[i] + a.pad_high[i] - a.kernel[i];
    require(room >= 0, "pool: kernel {} does not fit into x {}", extents_text(a.kernel, a.spatial),
            x);
    // A high pad that is never reached is harmless; a window that lies in it entirely would have no
    // maximum.
    y[d + 2] = room / a.stride[i] + 1;
    require((y[d + 2] - 1) * a.stride[i] - a.pad_low[i] < x[d + 2],
            "pool: the last window lies in the padding (x {}, {})", x, a.to_string());
  }
  return y;
}

std::vector<ValueType> Pool::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 4);
  const Shape y = pool_output_shape(a_, in[0].desc.shape);
  if (a_.kind == PoolKind::average) return {batched_as(y, in[0].desc.dtype)};
  int64_t window = 1;
  for (int d = 0; d < a_.spatial; ++d) window *= a_.kernel[static_cast<size_t>(d)];
  require(window <= kMostPlaces, "pool: a maximum of {} elements, at most {} are supported", window,
          kMostPlaces);
  return {batched_as(y, in[0].desc.dtype), batched_as(y, DType::u8)};
}

std::vector<Value> Pool::grad(const GradArgs& args) const {
  const Node& node = args.node;
  std::vector<Value> in{args.dout[0]};
  if (a_.kind == PoolKind::max) in.push_back(node.out[1]);
  return {args.append1(".dx", std::make_shared<PoolGrad>(a_, args.graph.shape(node.in[0])), in)};
}

std::string PoolGrad::attributes() const {
  return fmt::format("{} x {}", a_.to_string(), with_batch(x_shape_, 0));
}

std::vector<ValueType> PoolGrad::infer(Types in) const {
  require_inputs(name(), in, a_.kind == PoolKind::max ? 2 : 1);
  require_batched(name(), in[0], 4);
  const Shape x = with_batch(x_shape_, in[0].desc.shape[0]), y = pool_output_shape(a_, x);
  require(y == in[0].desc.shape, "pool_grad: dy is {}, x {} makes {}", in[0].desc.shape, x, y);
  if (a_.kind == PoolKind::max)
    require(in[1].desc.shape == y && in[1].desc.dtype == DType::u8,
            "pool_grad: the winners are {}, expected u8 {}", in[1].desc, y);
  return {batched_as(x, in[0].desc.dtype)};
}

std::vector<ValueType> GlobalAveragePool::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 3);
  const Shape& x = in[0].desc.shape;
  return {batched_as(Shape{x[0], x[1]}, in[0].desc.dtype)};
}

std::vector<Value> GlobalAveragePool::grad(const GradArgs& args) const {
  const Node& node = args.node;
  return {args.append1(".dx", std::make_shared<GlobalAveragePoolGrad>(args.graph.shape(node.in[0])),
                       {args.dout[0]})};
}

std::string GlobalAveragePoolGrad::attributes() const {
  return "x " + with_batch(x_shape_, 0).to_string();
}

std::vector<ValueType> GlobalAveragePoolGrad::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 2);
  const Shape& dy = in[0].desc.shape;
  require(dy.rank() == 2 && dy[1] == x_shape_[1],
          "global_average_pool_grad: dy {} does not fit x {}", dy, x_shape_);
  return {batched_as(with_batch(x_shape_, dy[0]), in[0].desc.dtype)};
}

std::optional<Reach> Pool::reach(Types, int axis, Rows out) const {
  const auto i = static_cast<size_t>(axis);
  const bool counts_inside = a_.kind == PoolKind::average && !a_.count_include_pad;
  if (counts_inside && (a_.pad_low[i] > 0 || a_.pad_high[i] > 0)) return std::nullopt;
  PoolAttributes inner = a_;
  inner.pad_low[i] = inner.pad_high[i] = 0;
  const int64_t first = out.first * a_.stride[i] - a_.pad_low[i];
  return Reach{.in = {{2 + axis, {first, first + (out.count() - 1) * a_.stride[i] + a_.kernel[i]}}},
               .op = std::make_shared<Pool>(inner),
               .padding = a_.kind == PoolKind::max ? -std::numeric_limits<float>::infinity() : 0};
}

}  // namespace tutti::ops
