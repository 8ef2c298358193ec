#pragma once
// Ops that move values without arithmetic: Reshape, Slice, Pad, Concat, SliceGrad, Slice's
// gradient, which scatters, and MoveBox, which does both. Dimension 0, the batch, is never touched,
// so all of them run sample by sample. They take any dtype; only floating-point tensors have
// gradients.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// x [N, ...] -> y [N, sample...]: the same numbers in the same logical order.
class Reshape : public NamedOp<"reshape", Walk::per_sample> {
 public:
  explicit Reshape(Shape sample) : sample_(sample) {}
  const Shape& sample() const { return sample_; }  ///< without the batch dimension
  std::string attributes() const override { return sample_.to_string(); }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  Shape sample_;
};

/// Indices start, start + step, ... below stop of one dimension.
struct SliceRange {
  int64_t start = 0, stop = 0, step = 1;
  int64_t count() const { return (stop - start + step - 1) / step; }
};

/// y = x[:, ranges[0], ranges[1], ...]: one range for each dimension after the batch, 0 <= start <
/// stop <= extent, step >= 1.
class Slice : public NamedOp<"slice", Walk::per_sample> {
 public:
  explicit Slice(std::vector<SliceRange> ranges) : ranges_(std::move(ranges)) {}
  const std::vector<SliceRange>& ranges() const { return ranges_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  std::vector<SliceRange> ranges_;
};

/// dy -> dx: zeros, but dx[:, ranges...] = dy.
class SliceGrad : public NamedOp<"slice_grad", Walk::per_sample> {
 public:
  SliceGrad(std::vector<SliceRange> ranges, Shape x_shape)
      : ranges_(std::move(ranges)), x_shape_(x_shape) {}
  const std::vector<SliceRange>& ranges() const { return ranges_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  std::vector<SliceRange> ranges_;
  Shape x_shape_;
};

/// y = zeros, but y[:, to...] = x[:, from...]: a Slice and, of its result, a SliceGrad or a Pad.
class MoveBox : public NamedOp<"move_box", Walk::per_sample> {
 public:
  /// `y_shape` has any batch.
  MoveBox(std::vector<SliceRange> from, std::vector<SliceRange> to, Shape y_shape)
      : from_(std::move(from)), to_(std::move(to)), y_shape_(y_shape) {}
  const std::vector<SliceRange>& from() const { return from_; }
  const std::vector<SliceRange>& to() const { return to_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  std::vector<SliceRange> from_, to_;
  Shape y_shape_;
};

/// y = x with low[i] before and high[i] elements after dimension i + 1, all equal to `value`.
class Pad : public NamedOp<"pad", Walk::per_sample> {
 public:
  Pad(std::vector<int64_t> low, std::vector<int64_t> high, float value = 0)
      : low_(std::move(low)), high_(std::move(high)), value_(value) {}
  const std::vector<int64_t>& low() const { return low_; }
  float value() const { return value_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  std::vector<int64_t> low_, high_;
  float value_;
};

/// Two or more tensors that differ in dimension `axis` (not 0) alone, one after the other.
class Concat : public NamedOp<"concat", Walk::per_sample> {
 public:
  explicit Concat(int axis = 1) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string attributes() const override;
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  int axis_;
};

/// Returns one range for each dimension after the batch; together they cover `shape` entirely.
std::vector<SliceRange> full_ranges(const Shape& shape);

}  // namespace tutti::ops
