#include "tutti/ops/dropout.h"

#include "tutti/ops/shape_check.h"

namespace tutti {

std::string Dropout::attributes() const {
  return fmt::format("probability {} salt {}", probability_, salt_);
}

std::vector<ValueType> Dropout::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 2);
  require(probability_ >= 0 && probability_ < 1, "dropout: probability {} is not in [0, 1)",
          probability_);
  return {in[0]};
}

std::vector<Value> Dropout::grad(const GradArgs& args) const {
  return {args.graph.append1(args.node.name + ".dx", args.node.op, {args.dout[0]})};
}

}  // namespace tutti
