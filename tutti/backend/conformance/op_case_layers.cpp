#include <algorithm>
#include <memory>
#include <optional>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/conv_transpose.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/power_spectrum.h"
#include "tutti/ops/resize.h"

namespace tutti {
namespace {

ConvAttributes conv_attributes(CaseLine& line, int spatial) {
  ConvAttributes a;
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

}  // namespace

void conv_case(CaseLine& line, OpCase& made) {
  const ConvAttributes a = conv_attributes(line, line.x.rank() - 2);
  const Shape w = kernel_shape(line, line.x[1] / std::max<int64_t>(a.groups, 1));
  const Shape y = conv_output_shape(a, line.x, w);
  const bool bias = line.has("bias");
  CaseInputs in(made);
  if (line.op == "conv") {
    made.problem.op = std::make_shared<Conv>(a, bias, activation_of(line));
    in.batched(line.x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "conv_backward_data") {
    made.problem.op = std::make_shared<ConvBackwardData>(a, line.x);
    in.batched(y, line.dtype).free(w);
  } else if (line.op == "conv_backward_weights") {
    made.problem.op = std::make_shared<ConvBackwardWeights>(a, w, line.has("whole"));
    made.problem.out_free = {true};
    in.batched(line.x, line.dtype).batched(y, line.dtype);
  } else {  // conv_transpose: EXTENTS describe its result
    CaseNumbers output_pad{};
    for (int d = 0; d < a.spatial; ++d) {
      const auto i = static_cast<size_t>(d);
      output_pad[i] = line.x[d + 2] - ((y[d + 2] - 1) * a.stride[i] - a.pad_low[i] - a.pad_high[i] +
                                       a.dilation[i] * (w[d + 2] - 1) + 1);
    }
    made.problem.op = std::make_shared<ConvTranspose>(a, bias, output_pad);
    in.batched(y, line.dtype).free(w);
    if (bias) in.free(Shape{line.x[1]});
  }
}

void batch_norm_case(CaseLine& line, OpCase& made) {
  const Shape &x = line.x, channels{line.x[1]};
  const bool relu = line.has("relu");
  CaseInputs in(made);
  if (line.op == "batch_norm_stats") {
    made.problem.op =
        std::make_shared<BatchNormStats>(NormStatistics{.running = line.has("running")});
    in.batched(x, line.dtype).fixed(channels).fixed(channels, Fill::positive);
  } else if (line.op == "batch_norm_grad_reduce") {
    const bool two = line.has("two");
    made.problem.op = std::make_shared<BatchNormGradReduce>(relu, two, epsilon_of(line));
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive);
    if (relu) in.batched(x, line.dtype);
    if (two) in.batched(x, line.dtype);
  } else if (line.op == "batch_norm_grad_scale") {
    made.problem.op = std::make_shared<BatchNormGradScale>(epsilon_of(line));
    in.batched(x, line.dtype).fixed(channels, Fill::positive).free(channels);
  } else if (line.op == "batch_norm_grad_apply") {
    made.problem.op = std::make_shared<BatchNormGradApply>();
    in.batched(x, line.dtype)
        .batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .fixed(channels)
        .fixed(channels);
  } else {
    const bool residual = line.has("residual");
    if (line.op == "batch_norm_apply")
      made.problem.op = std::make_shared<BatchNormApply>(relu, residual);
    else
      made.problem.op = std::make_shared<BatchNormInference>(relu, residual);
    in.batched(x, line.dtype)
        .fixed(channels)
        .fixed(channels, Fill::positive)
        .free(channels)
        .free(channels);
    if (residual) in.batched(x, line.dtype);
  }
}

void pool_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  if (line.op == "global_average_pool") {
    made.problem.op = std::make_shared<GlobalAveragePool>();
    in.batched(x, line.dtype);
    return;
  }
  if (line.op == "global_average_pool_grad") {
    made.problem.op = std::make_shared<GlobalAveragePoolGrad>(x);
    in.batched(Shape{x[0], x[1]}, line.dtype);
    return;
  }
  if (line.op == "spatial_sum") {
    made.problem.op = std::make_shared<SpatialSum>();
    in.batched(x, line.dtype);
    return;
  }
  if (line.op.starts_with("power_spectrum")) {
    const auto op = std::make_shared<PowerSpectrum>(
        PowerSpectrumAttributes{.floor = static_cast<float>(line.number("floor", 1e-6))});
    const ValueType of_x{{line.dtype, x, {}}, true};
    if (line.op == "power_spectrum_grad") {
      made.problem.op = std::make_shared<PowerSpectrumGrad>();
      const Shape y = op->infer(std::span(&of_x, 1))[0].desc.shape;
      in.batched(y, DType::f32).batched(y, DType::f32, Fill::unit);
    } else {
      made.problem.op = op;
    }
    in.batched(x, line.dtype);
    return;
  }
  if (line.op == "broadcast") {  // EXTENTS describe its result
    Shape one = x;
    for (int d = 2; d < x.rank(); ++d) one[d] = 1;
    made.problem.op =
        std::make_shared<Broadcast>(Shape(std::span<const int64_t>(x.begin() + 2, x.end())));
    in.batched(one, line.dtype);
    return;
  }
  if (line.op.starts_with("resize")) {
    const ResizeAttributes a{.factor = line.numbers("factor", 1),
                             .first = line.numbers("first", 0),
                             .count = line.numbers("count", 0)};
    if (line.op == "resize") {
      made.problem.op = std::make_shared<Resize>(a);
      in.batched(x, line.dtype);
    } else {
      made.problem.op = std::make_shared<ResizeGrad>(a, x);
      in.batched(resize_output_shape(a, x), line.dtype);
    }
    return;
  }
  PoolAttributes a;
  a.kind = line.has("max") ? PoolKind::max : PoolKind::average;
  line.has("average");
  a.spatial = x.rank() - 2;
  a.kernel = x.rank() == 5
                 ? CaseNumbers{line.extent('t', 1), line.extent('r', 1), line.extent('s', 1)}
                 : CaseNumbers{line.extent('r', 1), line.extent('s', 1), 1};
  a.stride = line.numbers("stride", 1);
  a.pad_low = a.pad_high = line.numbers("pad", 0);
  a.count_include_pad = !line.has("exclude_pad");
  if (line.op == "pool") {
    made.problem.op = std::make_shared<Pool>(a);
    in.batched(x, line.dtype);
  } else {
    made.problem.op = std::make_shared<PoolGrad>(a, x);
    const Shape y = pool_output_shape(a, x);
    in.batched(y, line.dtype);
    if (a.kind == PoolKind::max) in.batched(y, DType::u8, Fill::label);
    made.labels = a.kernel[0] * a.kernel[1] * a.kernel[2];
  }
}

void dense_case(CaseLine& line, OpCase& made) {
  const Shape &x = line.x, y{line.x[0], line.extent('k', 1)}, w{y[1], line.x.elements_from(1)};
  CaseInputs in(made);
  const DType y_dtype = line.has("narrow") ? line.dtype : DType::f32;
  if (line.op == "dense") {
    const bool bias = line.has("bias");
    made.problem.op = std::make_shared<Dense>(bias, y_dtype);
    in.batched(x, line.dtype).free(w);
    if (bias) in.free(Shape{w[0]});
  } else if (line.op == "dense_backward_data") {
    made.problem.op = std::make_shared<DenseBackwardData>(x, line.dtype);
    in.batched(y, y_dtype).free(w);
  } else {
    made.problem.op = std::make_shared<DenseBackwardWeights>();
    made.problem.out_free = {true};
    in.batched(x, line.dtype).batched(y, y_dtype);
  }
}

}  // namespace tutti
