#include "tutti/backend/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "tutti/backend/cpu/simd/channel_walk.h"
#include "tutti/base/error.h"
#include "tutti/ops/batch_norm.h"

namespace tutti::backend {
namespace {

using simd::Floats;

[[gnu::noinline]] void take_inverse_root(Floats* variance, float epsilon) {
  float lanes[simd::kLanes];
  simd::store(lanes, *variance, simd::AllLanes{});
  for (float& v : lanes) v = 1 / std::sqrt(v + epsilon);
  *variance = simd::load(lanes, simd::AllLanes{});
}

/// z = relu((y - mean) * scale + beta + residual), scale = gamma * inv_std.
template <class T, bool kRelu, bool kResidual>
struct ApplyPass {
  const T *y, *residual;
  const float *mean, *second, *gamma, *beta;
  T* z;
  std::optional<float> epsilon;  ///< set where the second statistic is the variance

  struct Params {
    Floats mean, scale, beta;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const {
    Floats inv_std = lanes.read(second);
    if (epsilon) take_inverse_root(&inv_std, *epsilon);
    return {lanes.read(mean), lanes.read(gamma) * inv_std, lanes.read(beta)};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    Floats v = (simd::load(y + at, lanes) - p.mean) * p.scale + p.beta;
    if constexpr (kResidual) v += simd::load(residual + at, lanes);
    if constexpr (kRelu) v = simd::relu(v);
    simd::store(z + at, v, lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

template <class T, bool kRelu, bool kResidual>
class ApplyKernel final : public Kernel {
 public:
  ApplyKernel(const ChannelView& view, std::optional<float> epsilon)
      : view_(view), epsilon_(epsilon) {}
  void run(const KernelArgs& args) override {
    ApplyPass<T, kRelu, kResidual> pass{
        input_of<T>(args, 0),         kResidual ? input_of<T>(args, 5) : nullptr,
        input_of<float>(args, 1),     input_of<float>(args, 2),
        input_of<float>(args, 3),     input_of<float>(args, 4),
        static_cast<T*>(args.out[0]), epsilon_};
    walk_tile(view_, pass);
  }

 private:
  ChannelView view_;
  std::optional<float> epsilon_;
};

/// g = (dz + dz2) * [z > 0]; sums of g and of g * (y - mean).
template <class T, bool kRelu, bool kTwo>
struct GradReducePass {
  const T *dz, *y, *z, *dz2;
  const float* mean;
  T* g;
  double *sum_g, *sum_gy;

  struct Params {
    Floats mean;
  };
  struct Sums {
    Floats g, gy;
  };
  Params params(const ChannelLanes& lanes) const { return {lanes.read(mean)}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums& s, int64_t at, Lanes lanes) const {
    Floats v = simd::load(dz + at, lanes);
    if constexpr (kTwo) v += simd::load(dz2 + at, lanes);
    if constexpr (kRelu) v = simd::where_positive(simd::load(z + at, lanes), v);
    simd::store(g + at, v, lanes);
    s.g += v;  // lanes not loaded are 0
    s.gy += v * (simd::load(y + at, lanes) - p.mean);
  }
  static void merge(Sums& a, const Sums& b) {
    a.g += b.g;
    a.gy += b.gy;
  }
  void done(const ChannelLanes& lanes, const Params&, const Sums& s) const {
    lanes.each(s.g, [&](int64_t c, float v) { sum_g[c] += v; });
    lanes.each(s.gy, [&](int64_t c, float v) { sum_gy[c] += v; });
  }
};

template <class T, bool kRelu, bool kTwo>
class GradReduceKernel final : public Kernel {
 public:
  GradReduceKernel(const ChannelView& view, std::optional<float> epsilon)
      : view_(view), epsilon_(epsilon) {}
  size_t state_bytes() const override {
    return static_cast<size_t>(2 * view_.channels) * sizeof(double);
  }
  void run(const KernelArgs& args) override {
    auto* const sums = static_cast<double*>(args.state);
    if (args.first) std::fill_n(sums, 2 * view_.channels, 0.0);
    GradReducePass<T, kRelu, kTwo> pass{input_of<T>(args, 0),
                                        input_of<T>(args, 1),
                                        kRelu ? input_of<T>(args, 4) : nullptr,
                                        kTwo ? input_of<T>(args, kRelu ? 5 : 4) : nullptr,
                                        input_of<float>(args, 2),
                                        static_cast<T*>(args.out[0]),
                                        sums,
                                        sums + view_.channels};
    walk_tile(view_, pass);
  }
  void finish(const FinishArgs& args) override {
    const auto* const second = static_cast<const float*>(args.in[3]);
    auto* const dgamma = static_cast<float*>(args.out[1]);
    auto* const dbeta = static_cast<float*>(args.out[2]);
    const ChannelShare share(view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      double sum_g = 0, sum_gy = 0;
      for (void* const state : args.states) {
        sum_g += static_cast<const double*>(state)[c];
        sum_gy += static_cast<const double*>(state)[view_.channels + c];
      }
      dbeta[c] = static_cast<float>(sum_g);
      const float inv_std = epsilon_ ? 1 / std::sqrt(second[c] + *epsilon_) : second[c];
      dgamma[c] = static_cast<float>(sum_gy * inv_std);
    }
  }

 private:
  ChannelView view_;
  std::optional<float> epsilon_;  ///< set where the second statistic is the variance
};

/// dy = scale * g - (y - mean) * slope - offset, with scale = gamma * inv_std, slope = scale *
/// inv_std * dgamma / M, offset = scale * dbeta / M.
template <class T>
struct GradApplyPass {
  const T *g, *y;
  const float *mean, *inv_std, *gamma, *dgamma, *dbeta;
  T* dy;
  float inverse_count;  ///< 1 / M

  struct Params {
    Floats mean, scale, slope, offset;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const {
    const Floats inv = lanes.read(inv_std), scale = lanes.read(gamma) * inv,
                 per_count = scale * inverse_count;
    return {lanes.read(mean), scale, per_count * inv * lanes.read(dgamma),
            per_count * lanes.read(dbeta)};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    const Floats centred = simd::load(y + at, lanes) - p.mean;
    simd::store(dy + at, p.scale * simd::load(g + at, lanes) - p.offset - centred * p.slope, lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

template <class T>
class GradApplyKernel final : public Kernel {
 public:
  explicit GradApplyKernel(const ChannelView& view) : view_(view) {}
  void run(const KernelArgs& args) override {
    const auto count = static_cast<double>(args.step->batch) * static_cast<double>(view_.positions);
    GradApplyPass<T> pass{
        input_of<T>(args, 0),     input_of<T>(args, 1),         input_of<float>(args, 2),
        input_of<float>(args, 3), input_of<float>(args, 4),     input_of<float>(args, 5),
        input_of<float>(args, 6), static_cast<T*>(args.out[0]), static_cast<float>(1 / count)};
    walk_tile(view_, pass);
  }

 private:
  ChannelView view_;
};

/// dy = gamma * inv_std * g.
template <class T>
struct GradScalePass {
  const T* g;
  const float *second, *gamma;
  T* dy;
  std::optional<float> epsilon;  ///< set where the second statistic is the variance

  struct Params {
    Floats scale;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const {
    Floats inv_std = lanes.read(second);
    if (epsilon) take_inverse_root(&inv_std, *epsilon);
    return {lanes.read(gamma) * inv_std};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    simd::store(dy + at, p.scale * simd::load(g + at, lanes), lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

template <class T>
class GradScaleKernel final : public Kernel {
 public:
  GradScaleKernel(const ChannelView& view, std::optional<float> epsilon)
      : view_(view), epsilon_(epsilon) {}
  void run(const KernelArgs& args) override {
    GradScalePass<T> pass{input_of<T>(args, 0), input_of<float>(args, 1), input_of<float>(args, 2),
                          static_cast<T*>(args.out[0]), epsilon_};
    walk_tile(view_, pass);
  }

 private:
  ChannelView view_;
  std::optional<float> epsilon_;
};

/// Returns the candidate K<type of y, a, b>(view, args...).
template <template <class, bool, bool> class K, class... Args>
KernelCandidate chosen_kernel(const KernelRequest& r, bool a, bool b, const Args&... args) {
  KernelCandidate c = batch_norm_candidate(r);
  if (!c.refusal.empty()) return c;
  const auto choose = [&](auto first, auto second) {
    with_float_type(r.in[0].dtype, [&](auto type) {
      c.make = [view = channel_view(r.in[0]), args...] {
        return std::make_unique<K<decltype(type), decltype(first)::value, decltype(second)::value>>(
            view, args...);
      };
    });
  };
  using True = std::true_type;
  using False = std::false_type;
  if (a)
    b ? choose(True{}, True{}) : choose(True{}, False{});
  else
    b ? choose(False{}, True{}) : choose(False{}, False{});
  return c;
}

/// Returns why these operands do not fit; empty if they do. Operands like y are activations, the
/// others are per channel.
std::string refusal_of_norm(const KernelRequest& r) {
  const TensorDesc& x = r.in[0];
  if (x.dtype != DType::f32 && x.dtype != DType::bf16)
    return fmt::format("no batch norm of {}", name_of(x.dtype));
  if (x.layout.channel_block(x.shape) == 0)
    return fmt::format("layout {} is not [N, C/b, positions, b]",
                       x.layout.to_string(x.shape.rank()));
  const auto fits = [&](const TensorDesc& d) {
    return d.shape.rank() == 1 ? d.dtype == DType::f32 && d.layout.is_plain() : d == x;
  };
  for (const auto* operands : {&r.in, &r.out})
    for (const TensorDesc& d : *operands)
      if (!fits(d))
        return fmt::format(
            "operand {} does not go with {}: activations share type and layout, the rest is plain "
            "f32",
            d.to_string(), x.to_string());
  return {};
}

}  // namespace

KernelCandidate batch_norm_candidate(const KernelRequest& r) {
  return {"cpu:" + std::string(r.op->name()), refusal_of_norm(r), r.in, r.out, {}};
}

void register_batch_norm_kernels(KernelTable& table) {
  using Epsilon = std::optional<float>;
  table.add<ops::BatchNormApply>([](const KernelRequest& r, const ops::BatchNormApply& op) {
    return chosen_kernel<ApplyKernel>(r, op.relu(), op.residual(), Epsilon{});
  });
  table.add<ops::BatchNormInference>([](const KernelRequest& r, const ops::BatchNormInference& op) {
    return chosen_kernel<ApplyKernel>(r, op.relu(), op.residual(), Epsilon(op.epsilon()));
  });
  table.add<ops::BatchNormGradReduce>(
      [](const KernelRequest& r, const ops::BatchNormGradReduce& op) {
        return chosen_kernel<GradReduceKernel>(r, op.relu(), op.two(), op.epsilon());
      });
  table.add<ops::BatchNormGradApply>(
      [](const KernelRequest& r) { return batch_norm_kernel<GradApplyKernel>(r); });
  table.add<ops::BatchNormGradScale>([](const KernelRequest& r, const ops::BatchNormGradScale& op) {
    return batch_norm_kernel<GradScaleKernel>(r, op.epsilon());
  });
}

}  // namespace tutti::backend
