#include "tutti/ops/losses.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// Throws unless the losses end the graph and their targets are data: the rule behind all losses.
void require_end(const Op& op, const GradArgs& args, size_t targets_from) {
  for (const Value v : args.dout)
    require(
        !v.valid(),
        "{}: '{}' is a loss and must not feed other ops; give differentiate the losses one by one",
        op.name(), args.node.name);
  for (size_t i = targets_from; i < args.needed.size(); ++i)
    require(!args.needed[i],
            "{}: the target of '{}' depends on parameters; only predictions are differentiated",
            op.name(), args.node.name);
}

void require_logits(std::string_view op, const SoftmaxCrossEntropyAttributes& a, Types in) {
  require_batched(op, in[0], 2);
  const Shape &x = in[0].desc.shape, &labels = in[1].desc.shape;
  bool fits = labels.rank() == x.rank() - 1 && labels[0] == x[0] && in[1].batched &&
              in[1].desc.dtype == DType::i32;
  for (int d = 2; fits && d < x.rank(); ++d) fits = labels[d - 1] == x[d];
  require(fits, "{}: logits {} need i32 labels of their shape without dimension 1, met {}", op, x,
          in[1].desc);
  require(a.class_weights.empty() || static_cast<int64_t>(a.class_weights.size()) == x[1],
          "{}: {} class weights for {} classes", op, a.class_weights.size(), x[1]);
  require(a.label_smoothing >= 0 && a.label_smoothing < 1,
          "{}: label smoothing {} is not in [0, 1)", op, a.label_smoothing);
}

void require_pair(std::string_view op, Types in) {
  require_inputs(op, in, 2);
  require_batched(op, in[0], 1);
  require_batched(op, in[1], 1);
  require_same_shape(op, in[0], in[1]);
}

}  // namespace

std::string SoftmaxCrossEntropyAttributes::to_string() const {
  std::string text = fmt::format("scale {}", scale);
  if (label_smoothing != 0) text += fmt::format(" label_smoothing {}", label_smoothing);
  if (!class_weights.empty()) text += " class_weights";
  for (const float w : class_weights) text += fmt::format(" {}", w);
  if (mean_over == MeanOver::labels) text += " mean_over labels";
  if (mean_over == MeanOver::given) text += " mean_over given";
  return text;
}

std::vector<ValueType> SoftmaxCrossEntropy::infer(Types in) const {
  const bool given = a_.mean_over == MeanOver::given;
  require_inputs(name(), in, given ? 3 : 2);
  require_logits(name(), a_, in);
  require(!given || (!in[2].batched && in[2].desc.shape.rank() == 0),
          "{}: the sum of weights is {}, a scalar is needed", name(), in.back().desc);
  return {unbatched_f32({}), unbatched_f32({})};
}

std::vector<Value> SoftmaxCrossEntropy::grad(const GradArgs& args) const {
  require_end(*this, args, 1);
  const Node& node = args.node;
  std::vector<Value> din(node.in.size());
  din[0] = args.append1(".dx", std::make_shared<SoftmaxCrossEntropyGrad>(a_),
                        {node.in[0], node.in[1], node.out[1]});
  return din;
}

std::string LabelWeights::attributes() const {
  std::string text = "weights";
  for (const float w : weights_) text += fmt::format(" {}", w);
  return text;
}

std::vector<ValueType> LabelWeights::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(in[0].batched && in[0].desc.dtype == DType::i32 && !weights_.empty(),
          "label_weights: {} with {} weights", in[0].desc, weights_.size());
  return {unbatched_f32({})};
}

std::vector<ValueType> SoftmaxCrossEntropyGrad::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_logits(name(), a_, in);
  require(in[2].desc.shape.rank() == 0, "{}: the sum of weights is {}, a scalar is needed", name(),
          in[2].desc);
  return {in[0]};
}

std::string_view name_of(PointwiseLossKind kind) {
  switch (kind) {
    case PointwiseLossKind::mse: return "mse";
    case PointwiseLossKind::mae: return "mae";
    case PointwiseLossKind::huber: return "huber";
    case PointwiseLossKind::bce_with_logits: return "bce_with_logits";
  }
  return "?";
}

std::string PointwiseLossAttributes::to_string() const {
  std::string text = fmt::format("{} scale {}", name_of(kind), scale);
  if (kind == PointwiseLossKind::huber) text += fmt::format(" delta {}", delta);
  if (kind == PointwiseLossKind::bce_with_logits) text += fmt::format(" pos_weight {}", pos_weight);
  return text;
}

std::vector<ValueType> PointwiseLoss::infer(Types in) const {
  require_pair(name(), in);
  require(a_.kind != PointwiseLossKind::huber || a_.delta > 0,
          "pointwise_loss: the delta of huber is {}, it must be positive", a_.delta);
  return {unbatched_f32({})};
}

std::vector<Value> PointwiseLoss::grad(const GradArgs& args) const {
  require_end(*this, args, 1);
  const Node& node = args.node;
  return {args.append1(".dx", std::make_shared<PointwiseLossGrad>(a_), {node.in[0], node.in[1]}),
          {}};
}

std::vector<ValueType> PointwiseLossGrad::infer(Types in) const {
  require_pair(name(), in);
  return {in[0]};
}

std::string GaussianKL::attributes() const { return fmt::format("scale {}", scale_); }

std::vector<ValueType> GaussianKL::infer(Types in) const {
  require_pair(name(), in);
  return {unbatched_f32({})};
}

std::vector<Value> GaussianKL::grad(const GradArgs& args) const {
  require_end(*this, args, 2);
  const Node& node = args.node;
  return args.append(".dx", std::make_shared<GaussianKLGrad>(scale_), node.in);
}

std::string GaussianKLGrad::attributes() const { return fmt::format("scale {}", scale_); }

std::vector<ValueType> GaussianKLGrad::infer(Types in) const {
  require_pair(name(), in);
  return {in[0], in[1]};
}

/// Labels have no channels: their rows are one dimension earlier.
std::optional<Reach> SoftmaxCrossEntropy::reach(Types in, int axis, Rows out) const {
  if (in[0].desc.shape.rank() <= 2 + axis) return std::nullopt;
  return Reach{.in = {{2 + axis, out}, {1 + axis, out}}, .op = nullptr};
}

}  // namespace tutti::ops
