#include "tutti/ops/shape_ops.h"

#include "tutti/ops/rows.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

Shape batch_and(int64_t batch, const Shape& sample) {
  std::vector<int64_t> dims{batch};
  dims.insert(dims.end(), sample.begin(), sample.end());
  return Shape(std::span<const int64_t>(dims));
}

std::string ranges_text(const std::vector<SliceRange>& ranges) {
  std::string text;
  for (const SliceRange& r : ranges) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", r.start, r.stop);
    if (r.step != 1) text += fmt::format(":{}", r.step);
  }
  return text;
}

Shape sliced_shape(std::string_view op, const std::vector<SliceRange>& ranges, const Shape& x) {
  require(static_cast<int>(ranges.size()) == x.rank() - 1,
          "{}: {} ranges for x {}, one for each dimension after the batch is needed", op,
          ranges.size(), x);
  Shape y = x;
  for (int d = 1; d < x.rank(); ++d) {
    const SliceRange& r = ranges[static_cast<size_t>(d - 1)];
    require(r.step >= 1 && r.start >= 0 && r.start < r.stop && r.stop <= x[d],
            "{}: range {}:{}:{} does not lie in dimension {} of x {}", op, r.start, r.stop, r.step,
            d, x);
    y[d] = r.count();
  }
  return y;
}

std::string numbers(const std::vector<int64_t>& list) {
  std::string text;
  for (const int64_t n : list) text += fmt::format("{}{}", text.empty() ? "" : "x", n);
  return text;
}

}  // namespace

std::vector<SliceRange> full_ranges(const Shape& shape) {
  std::vector<SliceRange> ranges;
  for (int d = 1; d < shape.rank(); ++d) ranges.push_back({0, shape[d], 1});
  return ranges;
}

std::vector<ValueType> Reshape::infer(Types in) const {
  require_inputs(name(), in, 1);
  const Shape& x = in[0].desc.shape;
  require(in[0].batched && sample_.rank() < Shape::kMaxRank, "reshape: needs a batch, met {}",
          in[0].desc);
  require(x.elements_from(1) == sample_.elements(),
          "reshape: a sample of x {} has {} elements, {} has {}", x, x.elements_from(1), sample_,
          sample_.elements());
  return {batched_as(batch_and(x[0], sample_), in[0].desc.dtype)};
}

std::vector<Value> Reshape::grad(const GradArgs& args) const {
  const Shape& x = args.graph.shape(args.node.in[0]);
  const Shape sample(std::span<const int64_t>(x.begin() + 1, x.end()));
  return {args.append1(".dx", std::make_shared<Reshape>(sample), {args.dout[0]})};
}

std::string Slice::attributes() const { return ranges_text(ranges_); }

std::vector<ValueType> Slice::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(in[0].batched, "slice: needs a batch, met {}", in[0].desc);
  return {batched_as(sliced_shape(name(), ranges_, in[0].desc.shape), in[0].desc.dtype)};
}

std::vector<Value> Slice::grad(const GradArgs& args) const {
  return {args.append1(".dx",
                       std::make_shared<SliceGrad>(ranges_, args.graph.shape(args.node.in[0])),
                       {args.dout[0]})};
}

std::string SliceGrad::attributes() const {
  return fmt::format("{} x {}", ranges_text(ranges_), with_batch(x_shape_, 0));
}

std::vector<ValueType> SliceGrad::infer(Types in) const {
  require_inputs(name(), in, 1);
  const Shape& dy = in[0].desc.shape;
  const Shape x = with_batch(x_shape_, dy[0]), y = sliced_shape(name(), ranges_, x);
  require(y == dy, "slice_grad: dy is {}, the slice of x {} is {}", dy, x, y);
  return {batched_as(x, in[0].desc.dtype)};
}

std::string MoveBox::attributes() const {
  return fmt::format("{} to {} of {}", ranges_text(from_), ranges_text(to_),
                     with_batch(y_shape_, 0));
}

std::vector<ValueType> MoveBox::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(in[0].batched, "move_box: needs a batch, met {}", in[0].desc);
  const Shape &x = in[0].desc.shape, y = with_batch(y_shape_, x[0]),
              box = sliced_shape(name(), from_, x), place = sliced_shape(name(), to_, y);
  require(box == place, "move_box: {} of x {} goes to {} of y {}", box, x, place, y);
  return {batched_as(y, in[0].desc.dtype)};
}

std::string Pad::attributes() const {
  return fmt::format("{},{} value {}", numbers(low_), numbers(high_), value_);
}

std::vector<ValueType> Pad::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(in[0].batched, "pad: needs a batch, met {}", in[0].desc);
  Shape y = in[0].desc.shape;
  require(static_cast<int>(low_.size()) == y.rank() - 1 && low_.size() == high_.size(),
          "pad: {} low and {} high pads for x {}, one for each dimension after the batch is needed",
          low_.size(), high_.size(), y);
  for (int d = 1; d < y.rank(); ++d) {
    const auto i = static_cast<size_t>(d - 1);
    require(low_[i] >= 0 && high_[i] >= 0, "pad: negative padding {},{}; use slice to cut",
            numbers(low_), numbers(high_));
    y[d] += low_[i] + high_[i];
  }
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> Pad::grad(const GradArgs& args) const {
  const Shape& x = args.graph.shape(args.node.in[0]);
  std::vector<SliceRange> ranges;
  for (size_t i = 0; i < low_.size(); ++i)
    ranges.push_back({low_[i], low_[i] + x[static_cast<int>(i) + 1], 1});
  return {args.append1(".dx", std::make_shared<Slice>(std::move(ranges)), {args.dout[0]})};
}

std::string Concat::attributes() const { return fmt::format("axis {}", axis_); }

std::vector<ValueType> Concat::infer(Types in) const {
  require(in.size() >= 2, "concat: {} inputs given, at least 2 expected", in.size());
  Shape y = in[0].desc.shape;
  require(in[0].batched && axis_ >= 1 && axis_ < y.rank(),
          "concat: axis {} is not a dimension of {} after the batch", axis_, in[0].desc);
  for (size_t i = 1; i < in.size(); ++i) {
    Shape other = in[i].desc.shape;
    require(other.rank() == y.rank() && in[i].desc.dtype == in[0].desc.dtype && in[i].batched,
            "concat: {} and {} do not fit", in[0].desc, in[i].desc);
    const int64_t extent = std::exchange(other[axis_], y[axis_]);
    require(other == y, "concat: {} and {} differ in more than axis {}", in[0].desc, in[i].desc,
            axis_);
    y[axis_] += extent;
  }
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> Concat::grad(const GradArgs& args) const {
  const Node& node = args.node;
  std::vector<Value> din(node.in.size());
  int64_t start = 0;
  for (size_t i = 0; i < din.size(); ++i) {
    const Shape x = args.graph.shape(node.in[i]);
    std::vector<SliceRange> ranges = full_ranges(x);
    ranges[static_cast<size_t>(axis_ - 1)] = {start, start + x[axis_], 1};
    start += x[axis_];
    if (args.needed[i])
      din[i] = args.graph.append1(fmt::format("{}.dx{}", node.name, i),
                                  std::make_shared<Slice>(std::move(ranges)), {args.dout[0]});
  }
  return din;
}

std::optional<Reach> Concat::reach(Types in, int axis, Rows out) const {
  if (axis_ != 1) return std::nullopt;
  return pointwise_reach(in, axis, out);
}

}  // namespace tutti::ops
