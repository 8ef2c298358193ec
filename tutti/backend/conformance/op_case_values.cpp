#include <fmt/format.h>

#include "tutti/backend/conformance/case_table.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"
#include "tutti/ops/interaction.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/reorder.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::backend {

namespace {

void pointwise_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const bool pair = line.op == "add" || line.op == "mul" || line.op == "activation_grad" ||
                    line.op == "gaussian_sample";
  const bool whole = line.has("whole");  // without a batch
  const Fill fill = line.has("ties") ? Fill::ties : Fill::normal;
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    if (whole)
      in.fixed(line.x, fill);
    else
      in.batched(line.x, line.dtype, fill);
  }
  if (line.op == "add") made.use<ops::Add>();
  if (line.op == "mul") made.use<ops::Mul>();
  if (line.op == "scale") made.use<ops::Scale>(line.real("factor", 1.2));
  if (line.op == "bias_backward") made.use<ops::BiasBackward>();
  if (line.op == "gaussian_sample") made.use<ops::GaussianSample>(line.real("factor", 0.5), 78);
  if (line.op == "dropout")
    made.use<ops::Dropout>(line.real("probability", 0.5), 77, line.whole_number("first", 0),
                           line.whole_number("all", 0));
  for (const DType target : {DType::f32, DType::bf16, DType::i32})
    if (line.op == "reorder" && line.has(fmt::format("to_{}", target == DType::f32    ? "f"
                                                              : target == DType::bf16 ? "bf"
                                                                                      : "i")
                                             .c_str()))
      made.use<ops::Reorder>(target);
  if (const auto f = activation_of(line)) {
    if (line.op == "activation") made.use<ops::Activation>(*f);
    if (line.op == "activation_grad") made.use<ops::ActivationGrad>(*f);
  }
}

/// The box goes to y with a gap between its elements, and with zeros before and behind it.
void move_box_case(const std::vector<ops::SliceRange>& from, CaseLine& line, OpCase& made) {
  const int64_t low = line.whole_number("low", 0), gap = line.whole_number("gap", 1),
                high = line.whole_number("high", 0);
  std::vector<ops::SliceRange> to;
  Shape y = line.x;
  for (const ops::SliceRange& range : from) {
    to.push_back({low, low + (range.count() - 1) * gap + 1, gap});
    y[static_cast<int>(std::ssize(to))] = to.back().stop + high;
  }
  made.use<ops::MoveBox>(from, to, y);
}

void shape_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  if (line.op == "reshape") {
    made.use<ops::Reshape>(Shape{x.elements_from(1) / x[1], x[1]});
    in.batched(x, line.dtype);
  } else if (line.op == "pad") {
    const std::vector<int64_t> low(static_cast<size_t>(x.rank() - 1), line.whole_number("low", 1));
    made.use<ops::Pad>(low, std::vector<int64_t>(low.size(), line.whole_number("high", 0)), 0.5f);
    in.batched(x, line.dtype);
  } else if (line.op == "concat") {
    const int axis = static_cast<int>(line.whole_number("axis", 1));
    made.use<ops::Concat>(axis);
    Shape other = x;
    other[axis] = line.whole_number("other", 1);
    in.batched(x, line.dtype).batched(other, line.dtype).batched(x, line.dtype);
  } else {
    const auto step = line.whole_number("step", 1), from = line.whole_number("from", 0);
    const bool channels = line.has("channels"), positions = line.has("positions");  // only those
    std::vector<ops::SliceRange> ranges = ops::full_ranges(x);
    for (size_t i = positions ? 1 : 0; i < (channels ? 1 : ranges.size()); ++i)
      ranges[i] = {from, x[static_cast<int>(i) + 1] - (channels ? from : 0), step};
    Shape y = x;
    for (size_t i = 0; i < ranges.size(); ++i) y[static_cast<int>(i) + 1] = ranges[i].count();
    if (line.op == "slice")
      made.use<ops::Slice>(ranges);
    else if (line.op == "slice_grad")
      made.use<ops::SliceGrad>(ranges, x);
    else
      move_box_case(ranges, line, made);
    in.batched(line.op == "slice_grad" ? y : x, line.dtype);
  }
}

void interaction_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const ops::InteractionAttributes a{x[2], line.has("itself")};
  if (line.op == "interaction") {
    made.use<ops::Interaction>(a);
  } else {
    made.use<ops::InteractionGrad>(a);
    in.batched({x[0], ops::FeaturePairs{x[1], a.itself}.count()}, line.dtype);
  }
  in.batched({x[0], x[1] * x[2]}, line.dtype);
}

void loss_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const auto scale = line.real("scale", 1);
  const bool grad = line.op.ends_with("_grad");
  if (line.op.starts_with("softmax")) {
    ops::SoftmaxCrossEntropyAttributes a{.label_smoothing = line.real("smoothing", 0),
                                         .class_weights = {},
                                         .scale = scale,
                                         .mean_over = line.has("over_labels")
                                                          ? ops::MeanOver::labels
                                                      : line.has("given") ? ops::MeanOver::given
                                                                          : ops::MeanOver::weights};
    if (line.has("weights"))
      for (int64_t k = 0; k < x[1]; ++k)
        a.class_weights.push_back(0.5f + 0.25f * static_cast<float>(k % 5));
    std::vector<int64_t> labels{x[0]};
    labels.insert(labels.end(), x.begin() + 2, x.end());
    made.labels = x[1];
    in.batched(x, line.dtype, line.has("ties") ? Fill::ties : Fill::normal)
        .batched(Shape(std::span<const int64_t>(labels)), DType::i32, Fill::label);
    if (grad || a.mean_over == ops::MeanOver::given) in.fixed({}, Fill::positive);
    made.use_either<ops::SoftmaxCrossEntropyGrad, ops::SoftmaxCrossEntropy>(grad, a);
  } else if (line.op.starts_with("gaussian")) {
    in.batched(x, line.dtype).batched(x, line.dtype);
    made.use_either<ops::GaussianKLGrad, ops::GaussianKL>(grad, scale);
  } else {
    ops::PointwiseLossAttributes a{.kind = ops::PointwiseLossKind::mse,
                                   .delta = line.real("delta", 1),
                                   .pos_weight = line.real("pos_weight", 1),
                                   .scale = scale};
    for (const ops::PointwiseLossKind kind :
         {ops::PointwiseLossKind::mse, ops::PointwiseLossKind::mae, ops::PointwiseLossKind::huber,
          ops::PointwiseLossKind::bce_with_logits})
      if (line.has(std::string(name_of(kind)).c_str())) a.kind = kind;
    in.batched(x, line.dtype)
        .batched(x, DType::f32,
                 a.kind == ops::PointwiseLossKind::bce_with_logits ? Fill::unit : Fill::normal);
    made.use_either<ops::PointwiseLossGrad, ops::PointwiseLoss>(grad, a);
  }
}

}  // namespace

void register_value_cases(CaseTable& table) {
  const CaseTable::Words images = {"n5c16h8w8", "n4c32h5w7", "n3c5h6w7", "n2c16d3h4w5",
                                   "n2c152h3w2"},
                         shapes = {"n5c16h8w8", "n4c32h5w7",   "n3c5h6w7",
                                   "n7c19",     "n2c16d3h4w5", "n2c152h3w2"};
  table.add({"add"}, pointwise_case).lines(shapes).lines({"n10c7 whole"}, {"f32"});
  table.add({"mul"}, pointwise_case).lines(shapes).lines({"n333 whole"}, {"f32"});
  table.add({"scale"}, pointwise_case).lines(shapes).lines({"n333 factor0.3 whole"}, {"f32"});
  table.add({"bias_backward", "gaussian_sample"}, pointwise_case).lines(shapes);
  table.add({"bias_backward"}, pointwise_case)
      .lines({"n17c3h18w18", "n40c16h16w16", "n17c66h16w16"});
  table.add({"dropout"}, pointwise_case)
      .lines(shapes)
      .lines(with_endings({"n3c48t68", "n2c19t8"}, {"", " first6 all90", " first64 all160"}));
  const auto activations = table.add({"activation", "activation_grad"}, pointwise_case);
  for (const ops::ActivationKind kind : ops::activation_kinds())
    activations.lines(with_endings(shapes, {fmt::format(" {}", name_of(kind))}));
  table.add({"activation"}, pointwise_case)
      .lines({"n333 gelu whole"}, {"f32"})
      .lines({"n5c16h8w8 relu ties", "n7c19 leaky_relu ties"});
  table.add({"reorder"}, pointwise_case)
      .lines({"n4c16h5w5 to_bf16", "n40c7 to_bf16 whole", "n3c19h4w5 to_i32"}, {"f32"})
      .lines({"n4c16h5w5 to_f32"}, {"bf16"})
      .lines({"n4c3h8w8 to_f32"}, {"u8"});
  table.add({"pad"}, shape_case).lines(with_endings(shapes, {" low1 high2"}));
  table.add({"concat"}, shape_case)
      .lines(with_endings(shapes, {" axis1 other6", " axis1 other16"}))
      .lines(with_endings(images, {" axis2 other2"}));
  table.add({"slice", "slice_grad"}, shape_case)
      .lines(with_endings(shapes, {" from1 step2", " from0", " from1 step3 channels"}));
  table.add({"slice"}, shape_case).lines({"n3c4h6w5 from1 step2"}, {"u8"});
  table.add({"move_box"}, shape_case)
      .lines(with_endings(shapes, {" from1 step2 low1 high2", " from0 gap2", " low2 gap3 channels",
                                   " from1 step2 positions low1"}));
  table.add({"reshape"}, shape_case).lines(images).lines({"n3c4h6w5"}, {"i32"});
  table.add({"interaction", "interaction_grad"}, interaction_case)
      .lines({"n3c5w7", "n5c27w16", "n2c2w33", "n4c9w64 itself", "n3c1w5 itself"});
  table.add({"softmax_cross_entropy", "softmax_cross_entropy_grad"}, loss_case)
      .lines({"n9c10", "n6c19 smoothing0.1 weights scale0.5", "n3c5h6w7 weights",
              "n3c16h8w8 smoothing0.2", "n3c5h6w7 weights over_labels scale0.5",
              "n3c3d3h4w5 weights", "n2c16d2h3w4 smoothing0.1 weights over_labels",
              "n3c5h6w7 weights given scale0.5", "n300c10", "n40c19 smoothing0.1",
              "n6c90 smoothing0.1 weights", "n9c10 ties", "n9c19 ties"});
  table.add({"pointwise_loss", "pointwise_loss_grad"}, loss_case)
      .lines({"n9c10 mse", "n9c16h6w7 mse", "n3c16h6w7 mse scale2", "n3c5h6w7 mae",
              "n9c33 huber delta0.7", "n3c16h6w7 bce_with_logits pos_weight3"});
  table.add({"gaussian_kl", "gaussian_kl_grad"}, loss_case).lines({"n9c33 scale0.1"});
}

}  // namespace tutti::backend
