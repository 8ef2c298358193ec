// Measures the single-threaded speed of the CPU backend's kernels as a plan runs them: over the
// tiles of tensors larger than a core's cache.
//   tutti_bench_kernels --benchmark_filter='conv.*16->16@32.*f32' --benchmark_repetitions=5
//     --benchmark_report_aggregates_only=true
// Counters: GFLOP/s (nominal, multiply and add are two) for convolutions; GB/s of operands read and
// written for batch norm, whose one tile stays in cache.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/numeric/denormals.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/shape_ops.h"

namespace {

using namespace tutti;

Buffer random_buffer(size_t bytes, DType type, uint64_t stream) {
  Buffer b(bytes);
  Rng rng(1, Purpose::test, stream);
  if (type == DType::bf16)
    for (bf16& v : b.as<bf16>()) v = bf16(rng.uniform() - 0.5f);
  else
    for (float& v : b.as<float>()) v = rng.uniform() - 0.5f;
  return b;
}

/// A kernel with operands: `batched` ones hold `tiles` tiles, the others one.
struct Bench {
  KernelCandidate candidate;
  std::vector<bool> batched_in, batched_out;
  int64_t tiles;
  double flop_per_tile = 0;

  void operator()(benchmark::State& state) const {
    const auto kernel = candidate.make();
    const auto buffers = [&](const std::vector<TensorDesc>& descs,
                             const std::vector<bool>& batched) {
      std::vector<Buffer> made;
      for (size_t i = 0; i < descs.size(); ++i)
        made.push_back(random_buffer(descs[i].bytes() * static_cast<size_t>(batched[i] ? tiles : 1),
                                     descs[i].dtype, i));
      return made;
    };
    const auto in = buffers(candidate.in, batched_in), out = buffers(candidate.out, batched_out);
    const Buffer workspace(kernel->workspace_bytes()), accumulator(kernel->state_bytes());
    std::vector<void*> pi(in.size()), po(out.size());
    StepInfo step;
    step.batch = candidate.in[0].shape[0] * tiles;
    KernelArgs args;
    args.in = pi.data();
    args.out = po.data();
    args.workspace = workspace.data();
    args.state = accumulator.data();
    args.step = &step;
    for (auto _ : state)
      for (int64_t t = 0; t < tiles; ++t) {
        const auto at = [&](const Buffer& b, const TensorDesc& d, bool batched) {
          return b.data() + (batched ? d.bytes() * static_cast<size_t>(t) : 0);
        };
        for (size_t i = 0; i < in.size(); ++i) pi[i] = at(in[i], candidate.in[i], batched_in[i]);
        for (size_t i = 0; i < out.size(); ++i)
          po[i] = at(out[i], candidate.out[i], batched_out[i]);
        args.first = t == 0;
        kernel->run(args);
      }
    const auto runs = static_cast<double>(state.iterations() * tiles);
    double bytes = 0;
    for (size_t i = 0; i < in.size(); ++i)
      bytes += batched_in[i] ? static_cast<double>(candidate.in[i].bytes()) : 0;
    for (size_t i = 0; i < out.size(); ++i)
      bytes += batched_out[i] ? static_cast<double>(candidate.out[i].bytes()) : 0;
    if (flop_per_tile > 0)
      state.counters["GFLOP/s"] =
          benchmark::Counter(flop_per_tile * runs / 1e9, benchmark::Counter::kIsRate);
    else
      state.counters["GB/s"] = benchmark::Counter(bytes * runs / 1e9, benchmark::Counter::kIsRate);
  }
};

void add(const std::string& name, const KernelRequest& request, Bench bench) {
  for (KernelCandidate& c : CpuBackend().candidates(request)) {
    if (!c.refusal.empty() || c.name == "reference") continue;
    bench.candidate = std::move(c);
    benchmark::RegisterBenchmark((name + "/" + bench.candidate.name).c_str(),
                                 bench);  // CPU time: other programs on the machine do not count
  }
}

std::string layout_name(const Layout& l) { return l.to_string(4); }

struct ConvShape {
  int64_t channels, outputs, extent, kernel, stride;
};

void add_convolution(const ConvShape& s, const Layout& layout, DType type, int64_t tile) {
  constexpr int64_t kBatch = 64;
  ConvAttributes a;
  for (size_t i = 0; i < 2; ++i) {
    a.stride[i] = s.stride;
    a.pad_low[i] = a.pad_high[i] = s.kernel / 2;
  }
  const int64_t out = (s.extent + 2 * (s.kernel / 2) - s.kernel) / s.stride + 1;
  const Layout x_layout = s.channels < 16 && layout.num_blocks > 0 ? Layout::plain() : layout;
  const TensorDesc x{type, {tile, s.channels, s.extent, s.extent}, x_layout},
      y{type, {tile, s.outputs, out, out}, layout};
  const TensorDesc w{DType::f32, {s.outputs, s.channels, s.kernel, s.kernel}, {}};
  const double flop =
      2.0 * static_cast<double>(tile * s.outputs * out * out * s.channels * s.kernel * s.kernel);
  const std::string name =
      fmt::format("{}->{}@{} k{} s{}/{}/{}/tile {}", s.channels, s.outputs, s.extent, s.kernel,
                  s.stride, name_of(type), layout_name(layout), tile);
  const int64_t tiles = kBatch / tile;
  const Conv forward(a, false);
  const ConvBackwardData data(a, x.shape);
  const ConvBackwardWeights weights(a, w.shape);
  add("conv/" + name, {&forward, {x, w}, {y}, {false, true}, {false}},
      {{}, {true, false}, {true}, tiles, flop});
  if (s.channels >= 16)
    add("conv_backward_data/" + name, {&data, {y, w}, {x}, {false, true}, {false}},
        {{}, {true, false}, {true}, tiles, flop});
  add("conv_backward_weights/" + name, {&weights, {x, y}, {w}, {false, false}, {true}},
      {{}, {true, true}, {false}, tiles, flop});
}

void add_batch_norm(const Shape& tile, const Layout& layout, DType type) {
  const TensorDesc a{type, tile, layout}, c{DType::f32, {tile[1]}, {}};
  const std::string name =
      fmt::format("/{}/{}/{}", tile.to_string(), name_of(type), layout_name(layout));
  const BatchNormStats stats;
  const BatchNormApply apply(true, false), apply_residual(true, true);
  const BatchNormGradReduce reduce(true, true);
  const BatchNormGradApply grad;
  const BatchNormGradScale scale;
  const auto run = [&](const std::string& what, const Op& op, const std::vector<TensorDesc>& in,
                       const std::vector<TensorDesc>& out) {
    Bench bench;
    bench.tiles = 1;
    for (const TensorDesc& d : in) bench.batched_in.push_back(d.shape.rank() > 1);
    for (const TensorDesc& d : out) bench.batched_out.push_back(d.shape.rank() > 1);
    add(what + name, {&op, in, out, std::vector<bool>(in.size()), std::vector<bool>(out.size())},
        bench);
  };
  run("batch_norm_stats", stats, {a, c, c}, {c, c});
  run("batch_norm_apply", apply, {a, c, c, c, c}, {a});
  run("batch_norm_apply+residual", apply_residual, {a, c, c, c, c, a}, {a});
  run("batch_norm_grad_reduce", reduce, {a, a, c, c, a, a}, {a, c, c});
  run("batch_norm_grad_apply", grad, {a, a, c, c, c, c, c}, {a});
  run("batch_norm_grad_scale", scale, {a, c, c}, {a});
}

void add_dense(int64_t samples, int64_t features, int64_t outputs, DType type) {
  const TensorDesc x{type, {samples, features}, {}}, y{type, {samples, outputs}, {}};
  const TensorDesc w{DType::f32, {outputs, features}, {}};
  const double flop = 2.0 * static_cast<double>(samples * features * outputs);
  const std::string name = fmt::format("{}x{}->{}/{}", samples, features, outputs, name_of(type));
  const Dense forward(false, type);
  const DenseBackwardData data(x.shape, type);
  const DenseBackwardWeights weights;
  add("dense/" + name, {&forward, {x, w}, {y}, {false, true}, {false}},
      {{}, {true, false}, {true}, 1, flop});
  add("dense_backward_data/" + name, {&data, {y, w}, {x}, {false, true}, {false}},
      {{}, {true, false}, {true}, 1, flop});
  add("dense_backward_weights/" + name, {&weights, {x, y}, {w}, {false, false}, {true}},
      {{}, {true, true}, {false}, 1, flop});
}

/// A 3x3 convolution with one filter a channel, as DeepCAM's encoder has them.
void add_depthwise(int64_t channels, int64_t height, int64_t width, const Layout& layout,
                   DType type) {
  ConvAttributes a;
  a.groups = channels;
  for (size_t i = 0; i < 2; ++i) a.pad_low[i] = a.pad_high[i] = 1;
  const TensorDesc x{type, {1, channels, height, width}, layout}, y = x;
  const TensorDesc w{DType::f32, {channels, 1, 3, 3}, {}};
  const double flop = 2.0 * 9 * static_cast<double>(x.elements());
  const std::string name =
      fmt::format("{}/{}/{}", x.shape.to_string(), name_of(type), layout_name(layout));
  const Conv forward(a, false);
  const ConvBackwardData data(a, x.shape);
  const ConvBackwardWeights weights(a, w.shape);
  add("depthwise/" + name, {&forward, {x, w}, {y}, {false, true}, {false}},
      {{}, {true, false}, {true}, 1, flop});
  add("depthwise_backward_data/" + name, {&data, {y, w}, {x}, {false, true}, {false}},
      {{}, {true, false}, {true}, 1, flop});
  add("depthwise_backward_weights/" + name, {&weights, {x, y}, {w}, {false, false}, {true}},
      {{}, {true, true}, {false}, 1, flop});
}

void add_pool(const Shape& shape, PoolAttributes a, int64_t kernel, int64_t stride, DType type) {
  a.spatial = shape.rank() - 2;
  for (size_t i = 0; i < static_cast<size_t>(a.spatial); ++i) {
    a.kernel[i] = kernel;
    a.stride[i] = stride;
    a.pad_low[i] = a.pad_high[i] = kernel > stride ? kernel / 2 : 0;
  }
  const Pool forward(a);
  const PoolGrad gradient(a, shape);
  const Layout layout = Layout::blocked_channels(16);
  const TensorDesc x{type, shape, layout}, y{type, pool_output_shape(a, shape), layout};
  const bool max = a.kind == PoolKind::max;
  const std::string name = fmt::format("{} {}/{} k{} s{}", max ? "max" : "average",
                                       shape.to_string(), name_of(type), kernel, stride);
  const TensorDesc winners{DType::u8, y.shape, layout};
  std::vector<TensorDesc> in{y}, out{y};
  if (max) in.push_back(winners), out.push_back(winners);
  add("pool/" + name, {&forward, {x}, out, {false}, std::vector<bool>(out.size(), false)},
      {{}, {true}, std::vector<bool>(out.size(), true), 1});
  const std::vector<bool> all(in.size(), true), none(in.size(), false);
  add("pool_grad/" + name, {&gradient, in, {x}, none, {false}}, {{}, all, {true}, 1});
}

/// Labels of pixels: GB/s of logits, labels and gradients.
void add_pixel_loss(const Layout& layout) {
  const TensorDesc x{DType::f32, {1, 3, 768, 1152}, layout}, labels{DType::i32, {1, 768, 1152}, {}},
      sum{DType::f32, {}, {}};
  const SoftmaxCrossEntropy loss{SoftmaxCrossEntropyAttributes{}};
  const SoftmaxCrossEntropyGrad gradient{SoftmaxCrossEntropyAttributes{}};
  const std::string name = fmt::format("{}/{}", x.shape.to_string(), layout_name(layout));
  add("softmax/" + name, {&loss, {x, labels}, {sum, sum}, {false, false}, {false, false}},
      {{}, {true, true}, {false, false}, 1});
  add("softmax_grad/" + name, {&gradient, {x, labels, sum}, {x}, {false, false, false}, {false}},
      {{}, {true, true, false}, {true}, 1});
}

/// The decoder's concatenation, and the time to describe and make its kernel.
void add_concat() {
  static const Concat op(1);
  const Layout layout = Layout::blocked_channels(16);
  static const TensorDesc a{DType::f32, {1, 256, 192, 288}, layout},
      b{DType::f32, {1, 48, 192, 288}, layout}, y{DType::f32, {1, 304, 192, 288}, layout};
  static const KernelRequest request{&op, {a, b}, {y}, {false, false}, {false}};
  add("concat/256+48", request, {{}, {true, true}, {true}, 1});
  benchmark::RegisterBenchmark("concat/256+48/making", [](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(CpuBackend().candidates(request)[0].make());
  });
}

/// The machine's limit for comparison: independent fused multiply-adds on registers.
void fma_peak(benchmark::State& state) {
  constexpr int kSums = simd::kSums, kRounds = 4096;
  simd::Floats sums[kSums]{};
  simd::Floats a = simd::splat(0.5f), b = simd::splat(0.25f);
  for (auto _ : state) {
    benchmark::DoNotOptimize(a);
    benchmark::DoNotOptimize(b);
    for (int r = 0; r < kRounds; ++r)
#pragma GCC unroll 16
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * a + b;
  }
  for (const simd::Floats& s : sums) benchmark::DoNotOptimize(simd::sum(s));
  state.counters["GFLOP/s"] = benchmark::Counter(
      2.0 * simd::kLanes * kSums * kRounds * static_cast<double>(state.iterations()) / 1e9,
      benchmark::Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  tutti::flush_denormals();  // as the program does
  benchmark::RegisterBenchmark("fma_peak", fma_peak);
  for (const DType type : {DType::f32, DType::bf16})
    for (const Layout& layout : {Layout::blocked_channels(16), Layout::channels_last(4)}) {
      for (const ConvShape& s : {ConvShape{3, 16, 32, 3, 1},
                                 {16, 16, 32, 3, 1},
                                 {16, 32, 32, 3, 2},
                                 {32, 32, 16, 3, 1},
                                 {64, 64, 8, 3, 1},
                                 {256, 64, 56, 1, 1}})
        for (int64_t tile = 1; tile <= 64; tile *= 2) add_convolution(s, layout, type, tile);
      for (const Shape& tile : {Shape{2, 16, 32, 32}, Shape{4, 32, 16, 16}, Shape{8, 64, 8, 8}})
        add_batch_norm(tile, layout, type);
    }
  for (const DType type : {DType::f32, DType::bf16})
    for (const int64_t samples : {1, 4, 16, 128}) {
      add_dense(samples, 1024, 1024, type);
      add_dense(samples, 64, 10, type);
    }
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t samples : {1, 4}) add_dense(samples, 32768, 128, type);
    add_dense(128, 4096, 1024, type);
    for (const Layout& layout : {Layout::blocked_channels(16), Layout::channels_last(4)}) {
      add_depthwise(728, 48, 72, layout, type);
      add_depthwise(128, 192, 288, layout, type);
    }
    add_pool({1, 32, 128, 128, 128}, {.kind = PoolKind::max}, 2, 2, type);
    add_pool({1, 64, 96, 144}, {.kind = PoolKind::max}, 3, 2, type);
    add_pool({1, 64, 96, 144}, {.kind = PoolKind::average}, 3, 1, type);
  }
  for (const Layout& layout : {Layout::plain(), Layout::channels_last(4)}) add_pixel_loss(layout);
  add_concat();
  for (const DType type : {DType::f32, DType::bf16})
    add_batch_norm({2, 16, 32, 32}, Layout::plain(), type);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
