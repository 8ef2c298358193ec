#include <fmt/format.h>

#include <memory>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"
#include "tutti/ops/interaction.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/reorder.h"
#include "tutti/ops/sequence/embedding.h"
#include "tutti/ops/shape_ops.h"

namespace tutti {

std::optional<ActivationAttributes> activation_of(CaseLine& line) {
  for (const ActivationKind kind :
       {ActivationKind::relu, ActivationKind::leaky_relu, ActivationKind::sigmoid,
        ActivationKind::tanh, ActivationKind::gelu, ActivationKind::gelu_tanh,
        ActivationKind::silu})
    if (line.has(std::string(name_of(kind)).c_str())) return ActivationAttributes{kind, 0.2f};
  return std::nullopt;
}

void pointwise_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const bool pair = line.op == "add" || line.op == "mul" || line.op == "activation_grad" ||
                    line.op == "gaussian_sample";
  const bool whole = line.has("whole");  // without a batch
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    if (whole)
      in.fixed(line.x);
    else
      in.batched(line.x, line.dtype);
  }
  if (line.op == "add") made.problem.op = std::make_shared<Add>();
  if (line.op == "mul") made.problem.op = std::make_shared<Mul>();
  if (line.op == "scale")
    made.problem.op = std::make_shared<Scale>(static_cast<float>(line.number("factor", 1.2)));
  if (line.op == "bias_backward") made.problem.op = std::make_shared<BiasBackward>();
  if (line.op == "gaussian_sample")
    made.problem.op =
        std::make_shared<GaussianSample>(static_cast<float>(line.number("factor", 0.5)), 78);
  if (line.op == "dropout")
    made.problem.op = std::make_shared<Dropout>(static_cast<float>(line.number("probability", 0.5)),
                                                77, static_cast<int64_t>(line.number("first", 0)),
                                                static_cast<int64_t>(line.number("all", 0)));
  for (const DType target : {DType::f32, DType::bf16, DType::i32})
    if (line.op == "reorder" && line.has(fmt::format("to_{}", target == DType::f32    ? "f"
                                                              : target == DType::bf16 ? "bf"
                                                                                      : "i")
                                             .c_str()))
      made.problem.op = std::make_shared<Reorder>(target);
  if (const auto f = activation_of(line)) {
    if (line.op == "activation") made.problem.op = std::make_shared<Activation>(*f);
    if (line.op == "activation_grad") made.problem.op = std::make_shared<ActivationGrad>(*f);
  }
}

void shape_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  if (line.op == "reshape") {
    made.problem.op = std::make_shared<Reshape>(Shape{x.elements_from(1) / x[1], x[1]});
    in.batched(x, line.dtype);
  } else if (line.op == "pad") {
    const std::vector<int64_t> low(static_cast<size_t>(x.rank() - 1),
                                   static_cast<int64_t>(line.number("low", 1)));
    made.problem.op = std::make_shared<Pad>(
        low, std::vector<int64_t>(low.size(), static_cast<int64_t>(line.number("high", 0))), 0.5f);
    in.batched(x, line.dtype);
  } else if (line.op == "interaction") {
    made.problem.op = std::make_shared<Interaction>(x[2], line.has("itself"));
    in.batched({x[0], x[1] * x[2]}, line.dtype);
  } else if (line.op == "interaction_grad") {
    const FeaturePairs pairs{x[1], line.has("itself")};
    made.problem.op = std::make_shared<InteractionGrad>(x[2], pairs.itself);
    in.batched({x[0], pairs.count()}, line.dtype).batched({x[0], x[1] * x[2]}, line.dtype);
  } else if (line.op == "concat") {
    const int axis = static_cast<int>(line.number("axis", 1));
    made.problem.op = std::make_shared<Concat>(axis);
    Shape other = x;
    other[axis] = static_cast<int64_t>(line.number("other", 1));
    in.batched(x, line.dtype).batched(other, line.dtype).batched(x, line.dtype);
  } else {
    const auto step = static_cast<int64_t>(line.number("step", 1)),
               from = static_cast<int64_t>(line.number("from", 0));
    const bool channels = line.has("channels");  // only dimension 1
    std::vector<SliceRange> ranges = full_ranges(x);
    for (size_t i = 0; i < (channels ? 1 : ranges.size()); ++i)
      ranges[i] = {from, x[static_cast<int>(i) + 1] - (channels ? from : 0), step};
    Shape y = x;
    for (size_t i = 0; i < ranges.size(); ++i) y[static_cast<int>(i) + 1] = ranges[i].count();
    if (line.op == "slice")
      made.problem.op = std::make_shared<Slice>(ranges);
    else
      made.problem.op = std::make_shared<SliceGrad>(ranges, x);
    in.batched(line.op == "slice" ? x : y, line.dtype);
  }
}

void loss_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const auto scale = static_cast<float>(line.number("scale", 1));
  const bool grad = line.op.ends_with("_grad");
  if (line.op.starts_with("softmax")) {
    SoftmaxCrossEntropyAttributes a{
        .label_smoothing = static_cast<float>(line.number("smoothing", 0)),
        .class_weights = {},
        .scale = scale,
        .mean_over = line.has("over_labels") ? MeanOver::labels
                     : line.has("given")     ? MeanOver::given
                                             : MeanOver::weights};
    if (line.has("weights"))
      for (int64_t k = 0; k < x[1]; ++k)
        a.class_weights.push_back(0.5f + 0.25f * static_cast<float>(k % 5));
    std::vector<int64_t> labels{x[0]};
    labels.insert(labels.end(), x.begin() + 2, x.end());
    made.labels = x[1];
    in.batched(x, line.dtype)
        .batched(Shape(std::span<const int64_t>(labels)), DType::i32, Fill::label);
    if (grad || a.mean_over == MeanOver::given) in.fixed({}, Fill::positive);
    if (grad)
      made.problem.op = std::make_shared<SoftmaxCrossEntropyGrad>(a);
    else
      made.problem.op = std::make_shared<SoftmaxCrossEntropy>(a);
  } else if (line.op.starts_with("gaussian")) {
    in.batched(x, line.dtype).batched(x, line.dtype);
    if (grad)
      made.problem.op = std::make_shared<GaussianKLGrad>(scale);
    else
      made.problem.op = std::make_shared<GaussianKL>(scale);
  } else {
    PointwiseLossAttributes a{.kind = PointwiseLossKind::mse,
                              .delta = static_cast<float>(line.number("delta", 1)),
                              .pos_weight = static_cast<float>(line.number("pos_weight", 1)),
                              .scale = scale};
    for (const PointwiseLossKind kind :
         {PointwiseLossKind::mse, PointwiseLossKind::mae, PointwiseLossKind::huber,
          PointwiseLossKind::bce_with_logits})
      if (line.has(std::string(name_of(kind)).c_str())) a.kind = kind;
    in.batched(x, line.dtype)
        .batched(x, DType::f32,
                 a.kind == PointwiseLossKind::bce_with_logits ? Fill::unit : Fill::normal);
    if (grad)
      made.problem.op = std::make_shared<PointwiseLossGrad>(a);
    else
      made.problem.op = std::make_shared<PointwiseLoss>(a);
  }
}

void update_case(CaseLine& line, OpCase& made) {
  std::shared_ptr<const Update> op;
  const double decay = line.number("decay", 0);
  const double rate = line.number("rate", 1), clip = line.number("clip", 0);
  const LambAttributes lamb{.weight_decay = decay, .rate = rate};
  if (line.op == "sgd_update")
    op = std::make_shared<SgdUpdate>(
        SgdAttributes{line.number("momentum", 0), decay, line.has("nesterov"), rate, clip});
  else if (line.op == "lars_update")
    op = std::make_shared<LarsUpdate>(LarsAttributes{.momentum = line.number("momentum", 0.9),
                                                     .weight_decay = decay,
                                                     .trust = 0.01,
                                                     .rate = rate});
  else if (line.op == "rmsprop_update")
    op = std::make_shared<RmspropUpdate>(
        RmspropAttributes{.weight_decay = decay, .rate = rate, .clip = clip});
  else if (line.op == "weight_average")
    op = std::make_shared<WeightAverage>(
        WeightAverageAttributes{decay, static_cast<int64_t>(line.number("from", 0))});
  else if (line.op == "parameter_norms")
    op = std::make_shared<ParameterNorms>();
  else if (line.op == "gradient_squares")
    op = std::make_shared<GradientSquares>();
  else if (line.op == "lamb_moments")
    op = std::make_shared<LambMoments>(lamb);
  else if (line.op == "lamb_update")
    op = std::make_shared<LambUpdate>(lamb);
  else
    op = std::make_shared<AdamUpdate>(AdamAttributes{
        .weight_decay = decay, .decoupled = line.has("decoupled"), .rate = rate, .clip = clip});
  made.problem.op = op;
  CaseInputs in(made);
  in.fixed({}, Fill::unit).fixed({}, Fill::unit);
  const auto count = static_cast<int64_t>(line.number("count", 1));
  const auto size = [&](int64_t p) {
    return line.x[0] + 7 * p;
  };  // different sizes, so that threads' shares begin inside parameters
  int64_t blocks = 0;
  for (int64_t p = 0; p < count; ++p) blocks += sum_blocks(size(p));
  const int square = line.op == "rmsprop_update" ? 2 : 3;  // a mean of squares among the operands
  if (op->sums() == Update::Sums::reads) in.fixed(Shape{blocks, 2}, Fill::positive);
  for (int64_t p = 0; p < count; ++p)
    for (int i = 0; i < op->arity(); ++i)
      in.fixed(Shape{size(p)}, i == square ? Fill::positive : Fill::normal);
}

/// A table of so many `rows` of wK numbers, some of which are named by n samples of cF columns.
/// `from`: rows of other ranks before these, `shared`: rows that all have.
void table_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const auto whole = [&](const char* word, int64_t otherwise) {
    return static_cast<int64_t>(line.number(word, static_cast<double>(otherwise)));
  };
  const Bag bag{.first = whole("first", 0),
                .count = whole("count", 1),
                .mean = line.has("mean"),
                .weighted = line.has("weighted"),
                .first_row = whole("from", 0)};
  const int64_t rows = whole("rows", 20);
  made.labels = whole("shared", rows);
  const auto finish = [&] {
    in.batched({x[0], x[1]}, DType::i32, Fill::label);
    if (bag.weighted) in.batched({x[0], bag.count}, DType::f32);
  };
  if (line.op == "embedding_bag") {
    in.fixed({rows, x[2]});
    finish();
    made.problem.op = std::make_shared<EmbeddingBag>(bag);
    return;
  }
  TableRule rule;
  if (line.has("adagrad")) rule.kind = TableRule::Kind::adagrad;
  if (line.has("rowwise_adagrad")) rule.kind = TableRule::Kind::rowwise_adagrad;
  in.fixed({}, Fill::unit).fixed({}, Fill::unit).fixed({rows, x[2]});
  if (const int64_t kept = rule.state_width(x[2]); kept > 0) in.fixed({rows, kept}, Fill::positive);
  in.batched({x[0], x[2]}, DType::f32);
  finish();
  made.problem.op = std::make_shared<TableUpdate>(bag, rule);
}

/// Two sets of `count` parameters of nK elements, added alternately, starting with the last one.
void clip_case(CaseLine& line, OpCase& made) {
  const auto count = static_cast<int>(line.number("count", 1));
  ClipScale::Attributes a{
      .limit = line.number("limit", 1), .parameters = {count, count}, .order = {}};
  for (int p = count; p-- > 0;) a.order.insert(a.order.end(), {p, p + count});
  made.problem.op = std::make_shared<ClipScale>(a);
  CaseInputs in(made);
  in.fixed({}, Fill::unit);
  for (int set = 0; set < 2; ++set)
    in.fixed(Shape{count * sum_blocks(line.x[0]), 1}, Fill::positive);
  for (int p = 0; p < 2 * count; ++p) in.fixed(Shape{line.x[0]});
}

}  // namespace tutti
