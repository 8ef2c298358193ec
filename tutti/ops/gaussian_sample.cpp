#include "tutti/ops/gaussian_sample.h"

#include "tutti/ops/elementwise.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string GaussianSample::attributes() const {
  return fmt::format("factor {} salt {}", factor_, salt_);
}

std::vector<graph::ValueType> GaussianSample::infer(graph::Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 2);
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: operands of types {} and {}", name(),
          name_of(in[0].desc.dtype), name_of(in[1].desc.dtype));
  return {batched_as(in[0].desc.shape, in[0].desc.dtype)};
}

/// dz/dmean = 1; dz/dlogvar = factor * (z - mean).
std::vector<graph::Value> GaussianSample::grad(const graph::GradArgs& args) const {
  const graph::Node& node = args.node;
  graph::Graph& graph = args.graph;
  const graph::Value dz = args.dout[0];
  graph::Value dlogvar;
  if (args.needed[1]) {
    const graph::Value minus =
        graph.append1(node.name + ".minus_mean", std::make_shared<Scale>(-1.f), {node.in[0]});
    const graph::Value moved =
        graph.append1(node.name + ".moved", std::make_shared<Add>(), {node.out[0], minus});
    const graph::Value product =
        graph.append1(node.name + ".product", std::make_shared<Mul>(), {dz, moved});
    dlogvar = graph.append1(node.name + ".dlogvar", std::make_shared<Scale>(factor_), {product});
  }
  return {dz, dlogvar};
}

}  // namespace tutti::ops
