#include "tutti/ops/sequence/token_head.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string TokenHeadAttributes::to_string() const {
  std::string text = loss.to_string();
  if (hits) text += " hits";
  if (data) text += " dx";
  if (weights) text += " dw";
  return text;
}

std::vector<ValueType> TokenHead::infer(Types in) const {
  require_inputs(name(), in, 4);
  require_batched(name(), in[0], 3);
  const Shape &x = in[0].desc.shape, &w = in[1].desc.shape;
  require(x.rank() == 3 && !in[1].batched && in[1].desc.dtype == DType::f32 &&
              w == Shape{w[0], x[1], 1},
          "{}: positions [N, channels, positions] need f32 weights [vocabulary, channels, 1], met "
          "{} and {}",
          name(), in[0].desc, in[1].desc);
  ValueType logits = in[0];
  logits.desc.shape = {x[0], w[0], x[2]};
  std::vector<ValueType> out =
      TokenLoss(a_.loss).infer(std::array{logits, in[2], in[3]});  // checks the labels, too
  if (a_.hits) out.push_back(out[1]);
  if (a_.data) out.push_back(in[0]);
  if (a_.weights) out.push_back(in[1]);
  return out;
}

std::vector<Value> TokenHead::grad(const GradArgs& args) const {
  const Node& node = args.node;
  require(!args.dout[0].valid() && !args.dout[1].valid(),
          "token_head: '{}' is a loss and must not feed other ops", node.name);
  require((!args.needed[0] || a_.data) && (!args.needed[1] || a_.weights),
          "token_head: '{}' makes no gradient of what is trained", node.name);
  std::vector<Value> din(node.in.size());
  if (args.needed[0]) din[0] = node.out[static_cast<size_t>(data_output())];
  if (args.needed[1]) din[1] = node.out[static_cast<size_t>(weights_output())];
  return din;
}

double TokenHead::flop(Types in, Types) const {
  return product_flop(in[0].desc.shape.elements(), in[1].desc.shape[0]) *
         (1 + a_.data + a_.weights);
}

}  // namespace tutti::ops
