#include "tutti/ops/reorder.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::vector<graph::ValueType> Reorder::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  graph::ValueType out = in[0];
  out.desc.dtype = target_;
  return {out};
}

std::vector<graph::Value> Reorder::grad(const graph::GradArgs& args) const {
  const DType source = args.graph.type(args.node.in[0]).desc.dtype;
  require(is_float(source), "reorder: '{}' converts from {}, through which no gradient passes",
          args.node.name, name_of(source));
  return {args.graph.append1(args.node.name + ".dx", std::make_shared<Reorder>(source),
                             {args.dout[0]})};
}

}  // namespace tutti::ops
