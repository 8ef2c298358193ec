#include "tutti/ops/reorder.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::vector<ValueType> Reorder::infer(Types in) const {
  require_inputs(name(), in, 1);
  ValueType out = in[0];
  out.desc.dtype = target_;
  return {out};
}

std::vector<Value> Reorder::grad(const GradArgs& args) const {
  const DType source = args.graph.type(args.node.in[0]).desc.dtype;
  require(is_float(source), "reorder: '{}' converts from {}, through which no gradient passes",
          args.node.name, name_of(source));
  return {args.append1(".dx", std::make_shared<Reorder>(source), {args.dout[0]})};
}

}  // namespace tutti::ops
