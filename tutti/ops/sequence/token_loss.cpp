#include "tutti/ops/sequence/token_loss.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_labelled(std::string_view op, Types in) {
  require_batched(op, in[0], 3);
  const Shape& x = in[0].desc.shape;
  require(x.rank() == 3 && in[1].batched && in[1].desc.dtype == DType::i32 &&
              in[1].desc.shape == Shape{x[0], x[2]},
          "{}: logits [N, vocabulary, positions] need i32 labels [N, positions], met {} and {}", op,
          in[0].desc, in[1].desc);
}

void require_token_logits(std::string_view op, const TokenLossAttributes& a, Types in) {
  require_labelled(op, in);
  require(!in[2].batched && in[2].desc.shape.rank() == 0,
          "{}: the count of tokens is {}, a scalar is needed", op, in[2].desc);
  require(a.label_smoothing >= 0 && a.label_smoothing < 1,
          "{}: label smoothing {} is not in [0, 1)", op, a.label_smoothing);
}

/// One number for each label.
ValueType surprise_of(const Shape& x) { return batched_as({x[0], 1, x[2]}, DType::f32); }

}  // namespace

std::string TokenLossAttributes::to_string() const {
  std::string text = fmt::format("scale {}", scale);
  if (label_smoothing != 0) text += fmt::format(" label_smoothing {}", label_smoothing);
  return text;
}

std::string CountTokens::attributes() const { return fmt::format("vocabulary {}", vocabulary_); }

std::vector<ValueType> CountTokens::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(in[0].batched && in[0].desc.dtype == DType::i32 && vocabulary_ >= 1,
          "count_tokens: {} below {}", in[0].desc, vocabulary_);
  return {unbatched_f32({})};
}

std::vector<ValueType> TokenLoss::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_token_logits(name(), a_, in);
  return {unbatched_f32({}), surprise_of(in[0].desc.shape)};
}

std::vector<Value> TokenLoss::grad(const GradArgs& args) const {
  const Node& node = args.node;
  require(!args.dout[0].valid() && !args.dout[1].valid(),
          "token_loss: '{}' is a loss and must not feed other ops", node.name);
  std::vector<Value> din(node.in.size());
  if (args.needed[0])
    din[0] = args.append1(".dx", std::make_shared<TokenLossGrad>(a_),
                          {node.in[0], node.in[1], node.in[2], node.out[1]});
  return din;
}

/// Labels have no channels: their rows are one dimension earlier.
std::optional<Reach> TokenLoss::reach(Types, int axis, Rows out) const {
  if (axis != 0) return std::nullopt;
  return Reach{.in = {{2, out}, {1, out}, {-1, {}}}, .op = nullptr};
}

std::vector<ValueType> TokenLossGrad::infer(Types in) const {
  require_inputs(name(), in, 4);
  require_token_logits(name(), a_, in);
  const ValueType want = surprise_of(in[0].desc.shape);
  require(in[3].batched && in[3].desc.shape == want.desc.shape && in[3].desc.dtype == DType::f32,
          "{}: the surprise is {}, {} is needed", name(), in[3].desc, want.desc);
  return {in[0]};
}

std::vector<ValueType> TokenHits::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_labelled(name(), in);
  return {surprise_of(in[0].desc.shape)};
}

std::optional<Reach> TokenHits::reach(Types, int axis, Rows out) const {
  if (axis != 0) return std::nullopt;
  return Reach{.in = {{2, out}, {1, out}}, .op = nullptr};
}

}  // namespace tutti::ops
