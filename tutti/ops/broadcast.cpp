#include "tutti/ops/broadcast.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
std::vector<graph::ValueType> Broadcast::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 4);
  Shape y = in[0].desc.shape;
  require(y.elements_from(2) == 1 && y.rank() == spatial_.rank() + 2,
          "broadcast: x {} needs one position and as many spatial dimensions as {}", y.to_string(),
          spatial_.to_string());
  for (int d = 0; d < spatial_.rank(); ++d) {
    require(spatial_[d] >= 1, "broadcast: x {} cannot fill {}", y.to_string(),
            spatial_.to_string());
    y[d + 2] = spatial_[d];
  }
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<graph::Value> Broadcast::grad(const graph::GradArgs& args) const {
  return {
      args.graph.append1(args.node.name + ".dx", std::make_shared<SpatialSum>(), {args.dout[0]})};
}

std::vector<graph::ValueType> SpatialSum::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 4);
  Shape y = in[0].desc.shape;
  for (int d = 2; d < y.rank(); ++d) y[d] = 1;
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<graph::Value> SpatialSum::grad(const graph::GradArgs& args) const {
  const Shape& x = args.graph.shape(args.node.in[0]);
  return {args.graph.append1(args.node.name + ".dx", std::make_shared<Broadcast>(x.from(2)),
                             {args.dout[0]})};
}

std::optional<graph::Reach> Broadcast::reach(graph::Types, int axis, graph::Rows out) const {
  Shape spatial = spatial_;
  spatial[axis] = out.count();
  return graph::Reach{.in = {{2 + axis, {0, 1}}}, .op = std::make_shared<Broadcast>(spatial)};
}

}  // namespace tutti::ops
