#include <algorithm>
#include <memory>
#include <optional>

#include "tutti/backend/conformance/case_table.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/power_spectrum.h"
#include "tutti/ops/resize.h"

namespace tutti::backend {
namespace {

ops::ConvAttributes conv_attributes(CaseLine& line, int spatial) {
  ops::ConvAttributes a;
  a.spatial = spatial;
  a.stride = line.numbers("stride", 1);
  a.dilation = line.numbers("dilation", 1);
  a.pad_low = line.numbers("pad", 0);
  a.pad_high = line.has("high") ? line.numbers("high", 0) : a.pad_low;
  a.groups = static_cast<int64_t>(line.number("groups", 1));
  return a;
}

/// Returns the epsilon of a batch norm whose second statistic is the variance.
std::optional<float> epsilon_of(CaseLine& line) {
  return line.has("variance") ? std::optional(1e-3f) : std::nullopt;
}

Shape kernel_shape(const CaseLine& line, int64_t in_channels) {
  const int64_t k = line.extent('k', 1), r = line.extent('r', 1), s = line.extent('s', 1);
  if (line.x.rank() == 3) return {k, in_channels, r};
  return line.x.rank() == 5 ? Shape{k, in_channels, line.extent('t', 1), r, s}
                            : Shape{k, in_channels, r, s};
}

void conv_case(CaseLine& line, OpCase& made) {
  const ops::ConvAttributes a = conv_attributes(line, line.x.rank() - 2);
  const Shape w = kernel_shape(line, line.x[1] / std::max<int64_t>(a.groups, 1));
  const Shape y = ops::conv_output_shape(a, line.x, w);
  const bool bias = line.has("bias");
  CaseInputs in(made);
  if (line.op == "conv") {
    made.use<ops::Conv>(a, bias, activation_of(line));
    in.batched(line.x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "conv_backward_data") {
    made.use<ops::ConvBackwardData>(a, line.x);
    in.batched(y, line.dtype).free(w);
  } else if (line.op == "conv_backward_weights") {
    made.use<ops::ConvBackwardWeights>(a, w, line.has("whole"));
    made.problem.out_free = {true};
    in.batched(line.x, line.dtype).batched(y, line.dtype);
  } else {  // conv_transpose: EXTENTS describe its result
    CaseNumbers output_pad{};
    for (int d = 0; d < a.spatial; ++d) {
      const auto i = static_cast<size_t>(d);
      output_pad[i] = line.x[d + 2] - ((y[d + 2] - 1) * a.stride[i] - a.pad_low[i] - a.pad_high[i] +
                                       a.dilation[i] * (w[d + 2] - 1) + 1);
    }
    made.use<ops::ConvTranspose>(a, bias, output_pad);
    in.batched(y, line.dtype).free(w);
    if (bias) in.free(Shape{line.x[1]});
  }
}

void batch_norm_case(CaseLine& line, OpCase& made) {
  const Shape &x = line.x, channels{line.x[1]};
  const bool relu = line.has("relu");
  CaseInputs in(made);
  if (line.op == "batch_norm_stats") {
    made.use<ops::BatchNormStats>(ops::NormStatistics{.running = line.has("running")});
    in.batched(x, line.dtype, line.has("positive") ? Fill::positive : Fill::normal)
        .fixed(channels)
        .fixed(channels, Fill::positive);
  } else if (line.op == "batch_norm_grad_reduce") {
    const bool two = line.has("two");
    made.use<ops::BatchNormGradReduce>(relu, two, epsilon_of(line));
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive);
    if (relu) in.batched(x, line.dtype);
    if (two) in.batched(x, line.dtype);
  } else if (line.op == "batch_norm_grad_scale") {
    made.use<ops::BatchNormGradScale>(epsilon_of(line));
    in.batched(x, line.dtype).fixed(channels, Fill::positive).free(channels);
  } else if (line.op == "batch_norm_grad_apply") {
    made.use<ops::BatchNormGradApply>();
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .fixed(channels)
        .fixed(channels);
  } else {
    const bool residual = line.has("residual");
    made.use_either<ops::BatchNormApply, ops::BatchNormInference>(line.op == "batch_norm_apply",
                                                                  relu, residual);
    in.batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .free(channels);
    if (residual) in.batched(x, line.dtype);
  }
}

void over_positions_case(CaseLine& line, OpCase& made) {
  made.use_either<ops::SpatialSum, ops::GlobalAveragePool>(line.op == "spatial_sum");
  CaseInputs(made).batched(line.x, line.dtype);
}

/// EXTENTS describe the result.
void to_positions_case(CaseLine& line, OpCase& made) {
  const Shape& x = line.x;
  if (line.op == "global_average_pool_grad") {
    made.use<ops::GlobalAveragePoolGrad>(x);
    CaseInputs(made).batched(Shape{x[0], x[1]}, line.dtype);
    return;
  }
  Shape one = x;
  for (int d = 2; d < x.rank(); ++d) one[d] = 1;
  made.use<ops::Broadcast>(Shape(std::span<const int64_t>(x.begin() + 2, x.end())));
  CaseInputs(made).batched(one, line.dtype);
}

void spectrum_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const auto op = std::make_shared<ops::PowerSpectrum>(
      ops::PowerSpectrumAttributes{.floor = line.real("floor", 1e-6)});
  const graph::ValueType of_x{{line.dtype, line.x, {}}, true};
  if (line.op == "power_spectrum_grad") {
    made.use<ops::PowerSpectrumGrad>();
    const Shape y = op->infer(std::span(&of_x, 1))[0].desc.shape;
    in.batched(y, DType::f32).batched(y, DType::f32, Fill::unit);
  } else {
    made.problem.op = op;
  }
  in.batched(line.x, line.dtype);
}

void resize_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const ops::ResizeAttributes a{.factor = line.numbers("factor", 1),
                                .first = line.numbers("first", 0),
                                .count = line.numbers("count", 0)};
  if (line.op == "resize") {
    made.use<ops::Resize>(a);
    in.batched(line.x, line.dtype);
  } else {
    made.use<ops::ResizeGrad>(a, line.x);
    in.batched(ops::resize_output_shape(a, line.x), line.dtype);
  }
}

void pool_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  ops::PoolAttributes a;
  a.kind = line.has("max") ? ops::PoolKind::max : ops::PoolKind::average;
  line.has("average");
  a.spatial = x.rank() - 2;
  a.kernel = x.rank() == 5
                 ? CaseNumbers{line.extent('t', 1), line.extent('r', 1), line.extent('s', 1)}
                 : CaseNumbers{line.extent('r', 1), line.extent('s', 1), 1};
  a.stride = line.numbers("stride", 1);
  a.pad_low = a.pad_high = line.numbers("pad", 0);
  a.count_include_pad = !line.has("exclude_pad");
  if (line.op == "pool") {
    made.use<ops::Pool>(a);
    in.batched(x, line.dtype, line.has("ties") ? Fill::ties : Fill::normal);
  } else {
    made.use<ops::PoolGrad>(a, x);
    const Shape y = ops::pool_output_shape(a, x);
    in.batched(y, line.dtype);
    if (a.kind == ops::PoolKind::max) in.batched(y, DType::u8, Fill::label);
    made.labels = a.kernel[0] * a.kernel[1] * a.kernel[2];
  }
}

void dense_case(CaseLine& line, OpCase& made) {
  const Shape &x = line.x, y{line.x[0], line.extent('k', 1)}, w{y[1], line.x.elements_from(1)};
  CaseInputs in(made);
  const DType y_dtype = line.has("narrow") ? line.dtype : DType::f32;
  if (line.op == "dense") {
    const bool bias = line.has("bias");
    made.use<ops::Dense>(bias, y_dtype);
    in.batched(x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "dense_backward_data") {
    made.use<ops::DenseBackwardData>(x, line.dtype);
    in.batched(y, y_dtype).free(w);
  } else {
    made.use<ops::DenseBackwardWeights>();
    made.problem.out_free = {true};
    in.batched(x, line.dtype).batched(y, y_dtype);
  }
}

const CaseTable::Words kConvolutions = {
    "n5c16h16w16 k16r3s3 pad1",
    "n4c3h32w32 k16r3s3 pad1",
    "n3c16h16w16 k32r3s3 stride2 pad1",
    "n3c16h16w16 k32r1s1 stride2",
    "n2c5h9w7 k6r3s2 stride2x1 pad1x0",
    "n2c8h12w12 k8r3s3 pad2 dilation2",
    "n2c32h8w8 k32r3s3 pad1 groups4",
    "n2c64h7w6 k64r3s3 pad1 groups2",
    "n3c32h9w8 k32r3s3 pad1 groups32",
    "n2c32h9w9 k32r3s3 stride2 pad1 groups32",
    "n2c48h8w9 k48r3s3 pad2 dilation2 groups48",
    "n2c24h6w7 k24r3s3 pad1 groups24",
    "n2c32d4h5w6 k32t3r3s3 pad1 groups32",
    "n2c4d6h7w8 k16t3r3s3 pad1",
    "n3c3h23w23 k16r7s7 stride2 pad3",
    "n2c16d4h4w4 k16t2r2s2 stride2",
    "n2c16h10w10 k16r3s3 stride2 pad0 high1",
    "n2c4d8h8w8 k16t2r2s2 pad0 high1",
    "n2c16d4h4w4 k32t3r3s3 pad1",
    "n2c24h9w9 k24r3s3 pad2 dilation2 groups24",
    "n3c80h9w7 k80r3s3 stride2 pad1 groups80",
    "n2c24h6w7 k32r3s3 pad5 dilation5",
    "n3c18h9w11 k20r3s3 pad2x0",
    "n1c148h5w9 k260r3s3 pad1",
    "n2c17h7w9 k32r3s3 pad1",
    "n2c18h7w9 k19r3s3 pad1",
    "n2c24d3h4w5 k36t3r3s3 pad1",
    "n1c272h9w13 k40r1s1",
    "n3c48t21 k40r1",
    "n2c4t9 k40r1",
    "n2c8t9 k40r1",
    "n2c196t9 k40r1",
    "n2c16t19 k32r3 pad1",
    "n1c19t33 k50r1",
    "n2c21t9 k51r1",
    "n1c401t30 k610r1",
    "n2c40h9w7 k1r3s3 pad1",
    "n1c24d3h4w5 k3t3r3s3 pad1",
    "n5c16d4h5w6 k16t2r3s2 stride1x2x1 pad1x0x1 high0 groups16",
    "n2c24d8h5w6 k36t3r3s3 pad0x1x1",
    "n1c16d6h17w16 k16t3r3s3 pad0x1x1",
    "n1c40d7h4w5 k18t3r3s3 pad0x1x1 dilation1x1x2",
    "n3c18h9w11 k20r3s3 pad0x1",
    "n2c34h10w9 k16r3s3 pad0x2 dilation1x2",
};

}  // namespace

void register_conv_cases(CaseTable& table) {
  table.add({"conv"}, conv_case)
      .lines(with_endings(kConvolutions, {"", " bias relu", " bias leaky_relu"}))
      .lines({"n5c16h16w16 k16r3s3 pad1 sigmoid", "n2c4d6h7w8 k16t3r3s3 pad1 bias tanh"}, {"f32"})
      // few products each: the error of bf16 in a large sum dominates a tanh near 0
      .lines({"n3c8h4w4 k16r1s1 bias sigmoid", "n3c8h4w4 k16r1s1 tanh"}, {"bf16"});
  table.add({"conv_backward_data"}, conv_case)
      .lines(kConvolutions)
      .lines({"n1c148d5h4w4 k196t3r3s3 pad0x1x1"});
  table.add({"conv_backward_weights"}, conv_case)
      .lines(kConvolutions)
      .lines(with_endings(
          {"n2c48t21 k70r1", "n3c16t19 k40r3 pad1", "n1c19t33 k17r1", "n2c24d3h4w5 k52t3r3s3 pad1",
           "n3c32h7w9 k48r3s3 pad1", "n3c16h20w20 k48r3s3 pad1", "n5c16h6w7 k16r3s3 stride2 pad1"},
          {" whole"}));
  table.add({"conv_transpose"}, conv_case).lines(with_endings(kConvolutions, {"", " bias"}));
}

void register_layer_cases(CaseTable& table) {
  const CaseTable::Words
      images = {"n5c16h8w8", "n4c32h5w7", "n3c5h6w7", "n2c16d3h4w5", "n2c152h3w2"},
      shapes = {"n5c16h8w8", "n4c32h5w7", "n3c5h6w7", "n7c19", "n2c16d3h4w5", "n2c152h3w2"},
      many = {"n17c3h18w18", "n40c16h16w16",
              "n17c66h16w16"};  // sums of many parts; means far from 0 for statistics
  table.add({"batch_norm_stats"}, batch_norm_case)
      .lines(with_endings(shapes, {"", " running"}))
      .lines(with_endings(many, {" positive"}));
  table.add({"batch_norm_grad_apply"}, batch_norm_case).lines(shapes);
  table.add({"batch_norm_grad_scale"}, batch_norm_case)
      .lines(with_endings(shapes, {"", " variance"}));
  table.add({"batch_norm_apply", "batch_norm_inference"}, batch_norm_case)
      .lines(with_endings(with_endings(shapes, {"", " relu"}), {"", " residual"}));
  table.add({"batch_norm_grad_reduce"}, batch_norm_case)
      .lines(with_endings(with_endings(with_endings(shapes, {"", " relu"}), {"", " two"}),
                          {"", " variance"}))
      .lines(with_endings(many, {" relu two"}));
  table.add({"global_average_pool", "spatial_sum"}, over_positions_case).lines(images);
  table.add({"global_average_pool_grad", "broadcast"}, to_positions_case).lines(images);
  table.add({"pool", "pool_grad"}, pool_case)
      .lines({"n4c16h8w8 max r2s2 stride2", "n3c5h9w7 max r3s3 stride2 pad1",
              "n2c16d6h6w6 max t2r2s2 stride2", "n4c16h8w8 average r2s2 stride2",
              "n3c5h9w7 average r3s3 stride2 pad1", "n3c5h9w7 average r3s2 pad1x0 exclude_pad",
              "n2c3d5h5w6 average t3r3s3 pad1", "n2c32h7w7 max r3s3 pad1",
              "n2c3d1h5w6 average t2r2s2 pad1", "n2c16d1h5w6 max t2r2s2 pad1"});
  table.add({"pool"}, pool_case)
      .lines({"n4c16h8w8 max r2s2 stride2 ties", "n3c5h9w7 max r3s3 stride2 pad1 ties",
              "n2c16d6h6w6 max t2r2s2 stride2 ties", "n2c32h7w7 max r3s3 pad1 ties"});
  table.add({"power_spectrum", "power_spectrum_grad"}, spectrum_case)
      .lines({"n2c3h24w40", "n3c16h6w7", "n2c5d8h5w9", "n1c2d6h70w9", "n2c1d12h12w12", "n2c3w97",
              "n1c2d1h9w12", "n1c1h150w3"});
  table.add({"power_spectrum"}, spectrum_case).lines({"n3c16h6w7 floor0.5"});
  table.add({"resize", "resize_grad"}, resize_case)
      .lines({"n3c16h4w5 factor2", "n2c5h3w4 factor3x1", "n2c16d2h3w3 factor2x1x3",
              "n3c32h4w5 factor2 first1x0 count5x0"});
  table.add({"dense"}, dense_case)
      .lines({"n5c64 k10 bias", "n7c33 k5", "n4c16h4w4 k20 bias", "n3c3h5w5 k17 bias narrow",
              "n64c256 k128 bias narrow", "n9c48 k11"});
  table.add({"dense_backward_data", "dense_backward_weights"}, dense_case)
      .lines({"n5c64 k10", "n7c33 k5", "n4c16h4w4 k20", "n3c3h5w5 k17 narrow",
              "n64c256 k128 narrow", "n9c48 k11"});
}

}  // namespace tutti::backend
