#include "tutti/ops/resize.h"

#include <fmt/format.h>

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

constexpr int64_t kMostRepeats = 64;

int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

}  // namespace

std::string ResizeAttributes::to_string() const {
  std::string text = "factor " + extents_text(factor, 3);
  if (first != Extents{0, 0, 0}) text += " first " + extents_text(first, 3);
  if (count != Extents{0, 0, 0}) text += " count " + extents_text(count, 3);
  return text;
}

Shape resize_output_shape(const ResizeAttributes& a, const Shape& x) {
  require(x.rank() >= 3 && x.rank() <= 5,
          "resize: x {} has no spatial dimensions, or more than three", x);
  Shape y = x;
  for (int d = 2; d < x.rank(); ++d) {
    const auto i = static_cast<size_t>(d - 2);
    require(a.factor[i] >= 1 && a.factor[i] <= kMostRepeats,
            "resize: a factor is between 1 and {}, not {}", kMostRepeats, a.factor[i]);
    y[d] = a.extent(i, x[d]);
    require(a.first[i] >= 0 && a.first[i] < a.factor[i] && a.first[i] + y[d] <= a.factor[i] * x[d],
            "resize: x {} does not reach to {} rows from {} on", x, y[d], a.first[i]);
  }
  return y;
}

std::vector<ValueType> Resize::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 3);
  return {batched_as(resize_output_shape(a_, in[0].desc.shape), in[0].desc.dtype)};
}

std::vector<Value> Resize::grad(const GradArgs& args) const {
  const Shape& x = args.graph.shape(args.node.in[0]);
  return {args.append1(".dx", std::make_shared<ResizeGrad>(a_, x), {args.dout[0]})};
}

std::optional<Reach> Resize::reach(Types, int axis, Rows out) const {
  const auto d = static_cast<size_t>(axis);
  if (a_.first[d] != 0 || a_.count[d] != 0) return std::nullopt;  // cut already
  const Rows in{floor_of(out.first, a_.factor[d]), floor_of(out.last - 1, a_.factor[d]) + 1};
  ResizeAttributes rows = a_;
  // All repetitions of one row are identical, so slabs of single rows share one op.
  rows.first[d] = in.count() == 1 ? 0 : out.first - in.first * a_.factor[d];
  rows.count[d] = out.count();
  return Reach{.in = {{2 + axis, in}}, .op = std::make_shared<Resize>(rows)};
}

std::string ResizeGrad::attributes() const {
  return fmt::format("{} x {}", a_.to_string(), with_batch(x_shape_, 1));
}

std::vector<ValueType> ResizeGrad::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 3);
  const Shape &dy = in[0].desc.shape, x = with_batch(x_shape_, dy[0]);
  require(resize_output_shape(a_, x) == dy, "resize_grad: dy {} is not what x {} becomes", dy, x);
  return {batched_as(x, in[0].desc.dtype)};
}

}  // namespace tutti::ops
