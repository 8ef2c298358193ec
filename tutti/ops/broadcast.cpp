#include "tutti/ops/broadcast.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
std::vector<ValueType> Broadcast::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 4);
  Shape y = in[0].desc.shape;
  require(y.elements_from(2) == 1 && y.rank() == spatial_.rank() + 2,
          "broadcast: x {} needs one position and as many spatial dimensions as {}", y, spatial_);
  for (int d = 0; d < spatial_.rank(); ++d) {
    require(spatial_[d] >= 1, "broadcast: x {} cannot fill {}", y, spatial_);
    y[d + 2] = spatial_[d];
  }
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> Broadcast::grad(const GradArgs& args) const {
  return {args.append1(".dx", std::make_shared<SpatialSum>(), {args.dout[0]})};
}

std::vector<ValueType> SpatialSum::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 4);
  Shape y = in[0].desc.shape;
  for (int d = 2; d < y.rank(); ++d) y[d] = 1;
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> SpatialSum::grad(const GradArgs& args) const {
  const Shape& x = args.graph.shape(args.node.in[0]);
  return {args.append1(".dx", std::make_shared<Broadcast>(x.from(2)), {args.dout[0]})};
}

std::optional<Reach> Broadcast::reach(Types, int axis, Rows out) const {
  Shape spatial = spatial_;
  spatial[axis] = out.count();
  return Reach{.in = {{2 + axis, {0, 1}}}, .op = std::make_shared<Broadcast>(spatial)};
}

}  // namespace tutti::ops
