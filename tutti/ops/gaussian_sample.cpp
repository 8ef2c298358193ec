#include "tutti/ops/gaussian_sample.h"

#include "tutti/ops/elementwise.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string GaussianSample::attributes() const {
  return fmt::format("factor {} salt {}", factor_, salt_);
}

std::vector<ValueType> GaussianSample::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 2);
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: operands of types {} and {}", name(),
          name_of(in[0].desc.dtype), name_of(in[1].desc.dtype));
  return {batched_as(in[0].desc.shape, in[0].desc.dtype)};
}

/// dz/dmean = 1; dz/dlogvar = factor * (z - mean).
std::vector<Value> GaussianSample::grad(const GradArgs& args) const {
  const Node& node = args.node;
  const Value dz = args.dout[0];
  Value dlogvar;
  if (args.needed[1]) {
    const Value minus = args.append1(".minus_mean", std::make_shared<Scale>(-1.f), {node.in[0]});
    const Value moved = args.append1(".moved", std::make_shared<Add>(), {node.out[0], minus});
    const Value product = args.append1(".product", std::make_shared<Mul>(), {dz, moved});
    dlogvar = args.append1(".dlogvar", std::make_shared<Scale>(factor_), {product});
  }
  return {dz, dlogvar};
}

}  // namespace tutti::ops
