#include "tutti/backend/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "tutti/backend/cpu/channel_walk.h"
#include "tutti/base/error.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/parts.h"

namespace tutti {
namespace {

using simd::Floats;

template <class T>
const T* in(const KernelArgs& args, size_t i) {
  return static_cast<const T*>(args.in[i]);
}

/// This part's channels of a finish.
struct Share {
  int64_t begin, end;
  Share(int64_t channels, const FinishArgs& args)
      : begin(channels * args.part / args.parts), end(channels * (args.part + 1) / args.parts) {}
};

// --- statistics: shifted sums within a tile, Chan, Golub and LeVeque (1983) between tiles and
// threads ---

/// Per channel: mean and sum of squared deviations of `count` numbers, as count, mean[C],
/// deviations[C].
struct Moments {
  double* count;
  double* mean;
  double* deviations;
  Moments(void* state, int64_t channels)
      : count(static_cast<double*>(state)), mean(count + 1), deviations(mean + channels) {}
  static size_t bytes(int64_t channels) {
    return static_cast<size_t>(1 + 2 * channels) * sizeof(double);
  }
};

/// Merges (count_b, mean_b, deviations_b) into the first triple's mean and deviations.
void merge_moments(double count, double& mean, double& deviations, double count_b, double mean_b,
                   double deviations_b) {
  const double all = count + count_b, delta = mean_b - mean;
  mean += delta * count_b / all;
  deviations += deviations_b + delta * delta * count * count_b / all;
}

template <class T>
struct StatsPass {
  const T* y;
  Moments total;  ///< before this tile
  double tile_count;

  struct Params {
    Floats shift;  ///< near the mean, so that the squares do not cancel
  };
  struct Sums {
    Floats s1, s2;
  };
  Params params(const ChannelLanes& lanes) const { return {lanes.first(y)}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums& s, int64_t at, Lanes lanes) const {
    Floats d = simd::load(y + at, lanes) - p.shift;
    if constexpr (std::is_same_v<Lanes, simd::SomeLanes>) d = simd::first_lanes(d, lanes.n);
    s.s1 += d;
    s.s2 += d * d;
  }
  static void merge(Sums& a, const Sums& b) {
    a.s1 += b.s1;
    a.s2 += b.s2;
  }
  void done(const ChannelLanes& lanes, const Params& p, const Sums& s) {
    double s2[simd::kLanes];
    int i = 0;
    lanes.each(s.s2, [&](int64_t, float v) { s2[i++] = v; });
    i = 0;
    lanes.each(s.s1, [&](int64_t c, float v) {
      const double s1 = v;
      const double mean = static_cast<double>(p.shift[lanes.count == 0 ? 0 : i]) + s1 / tile_count;
      const double deviations = std::max(0.0, s2[i] - s1 * s1 / tile_count);
      merge_moments(*total.count, total.mean[c], total.deviations[c], tile_count, mean, deviations);
      ++i;
    });
  }
};

template <class T>
class MomentsKernel : public Kernel {
 public:
  explicit MomentsKernel(const ChannelView& view) : view_(view) {}
  size_t state_bytes() const override { return Moments::bytes(view_.channels); }
  void run(const KernelArgs& args) override {
    StatsPass<T> pass{in<T>(args, 0), Moments(args.state, view_.channels),
                      static_cast<double>(view_.samples * view_.positions)};
    if (args.first) std::fill_n(pass.total.count, 1 + 2 * view_.channels, 0.0);
    walk_tile(view_, pass);
    *pass.total.count += pass.tile_count;
  }
  /// BatchNormMoments.
  void finish(const FinishArgs& args) override {
    const Share share(view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      const Total all = total(args, c);
      static_cast<float*>(args.out[0])[c] = static_cast<float>(all.mean);
      static_cast<float*>(args.out[1])[c] = static_cast<float>(all.deviations / all.count);
    }
  }

 protected:
  struct Total {
    double count = 0, mean = 0, deviations = 0;
  };
  /// Of all threads' values of a channel.
  Total total(const FinishArgs& args, int64_t c) const {
    Total all;
    for (void* const state : args.states) {
      const Moments m(state, view_.channels);
      merge_moments(all.count, all.mean, all.deviations, *m.count, m.mean[c], m.deviations[c]);
      all.count += *m.count;
    }
    return all;
  }

  ChannelView view_;
};

template <class T>
class StatsKernel final : public MomentsKernel<T> {
 public:
  StatsKernel(const BatchNormStats& op, const ChannelView& view)
      : MomentsKernel<T>(view), epsilon_(op.epsilon()), momentum_(op.momentum()) {}
  void finish(const FinishArgs& args) override {
    auto* const running_mean = static_cast<float*>(args.in[1]);
    auto* const running_var = static_cast<float*>(args.in[2]);
    auto* const mean_out = static_cast<float*>(args.out[0]);
    auto* const inv_std_out = static_cast<float*>(args.out[1]);
    const Share share(this->view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      const auto [count, mean, deviations] = this->total(args, c);
      const double variance = deviations / count, unbiased = deviations / std::max(count - 1, 1.0);
      mean_out[c] = static_cast<float>(mean);
      inv_std_out[c] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(epsilon_)));
      running_mean[c] += momentum_ * (static_cast<float>(mean) - running_mean[c]);
      running_var[c] += momentum_ * (static_cast<float>(unbiased) - running_var[c]);
    }
  }

 private:
  float epsilon_, momentum_;
};

// --- elementwise passes with per-channel parameters ---

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
  std::optional<float> epsilon;  ///< given: the second statistic is the variance

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
    ApplyPass<T, kRelu, kResidual> pass{in<T>(args, 0),
                                        kResidual ? in<T>(args, 5) : nullptr,
                                        in<float>(args, 1),
                                        in<float>(args, 2),
                                        in<float>(args, 3),
                                        in<float>(args, 4),
                                        static_cast<T*>(args.out[0]),
                                        epsilon_};
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
  explicit GradReduceKernel(const ChannelView& view) : view_(view) {}
  size_t state_bytes() const override {
    return static_cast<size_t>(2 * view_.channels) * sizeof(double);
  }
  void run(const KernelArgs& args) override {
    auto* const sums = static_cast<double*>(args.state);
    if (args.first) std::fill_n(sums, 2 * view_.channels, 0.0);
    GradReducePass<T, kRelu, kTwo> pass{in<T>(args, 0),
                                        in<T>(args, 1),
                                        kRelu ? in<T>(args, 4) : nullptr,
                                        kTwo ? in<T>(args, kRelu ? 5 : 4) : nullptr,
                                        in<float>(args, 2),
                                        static_cast<T*>(args.out[0]),
                                        sums,
                                        sums + view_.channels};
    walk_tile(view_, pass);
  }
  void finish(const FinishArgs& args) override {
    const auto* const inv_std = static_cast<const float*>(args.in[3]);
    auto* const dgamma = static_cast<float*>(args.out[1]);
    auto* const dbeta = static_cast<float*>(args.out[2]);
    const Share share(view_.channels, args);
    for (int64_t c = share.begin; c < share.end; ++c) {
      double sum_g = 0, sum_gy = 0;
      for (void* const state : args.states) {
        sum_g += static_cast<const double*>(state)[c];
        sum_gy += static_cast<const double*>(state)[view_.channels + c];
      }
      dbeta[c] = static_cast<float>(sum_g);
      dgamma[c] = static_cast<float>(sum_gy * inv_std[c]);
    }
  }

 private:
  ChannelView view_;
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
    GradApplyPass<T> pass{in<T>(args, 0),
                          in<T>(args, 1),
                          in<float>(args, 2),
                          in<float>(args, 3),
                          in<float>(args, 4),
                          in<float>(args, 5),
                          in<float>(args, 6),
                          static_cast<T*>(args.out[0]),
                          static_cast<float>(1 / count)};
    walk_tile(view_, pass);
  }

 private:
  ChannelView view_;
};

// --- choosing the instantiation ---

using Make = std::function<std::unique_ptr<Kernel>()>;

/// Calls f with integral constants for two run-time booleans.
template <class F>
Make choose(bool a, bool b, F f) {
  using True = std::true_type;
  using False = std::false_type;
  if (a) return b ? f(True{}, True{}) : f(True{}, False{});
  return b ? f(False{}, True{}) : f(False{}, False{});
}

template <class T>
Make make_for(const Op& op, const ChannelView& view) {
  if (const auto* o = dynamic_cast<const BatchNormStats*>(&op))
    return [o = *o, view] { return std::make_unique<StatsKernel<T>>(o, view); };
  if (dynamic_cast<const BatchNormMoments*>(&op) != nullptr)
    return [view] { return std::make_unique<MomentsKernel<T>>(view); };
  const auto apply = [&](bool with_relu, bool with_residual, std::optional<float> epsilon) {
    return choose(with_relu, with_residual, [&](auto relu, auto residual) -> Make {
      return [view, epsilon] {
        return std::make_unique<ApplyKernel<T, decltype(relu)::value, decltype(residual)::value>>(
            view, epsilon);
      };
    });
  };
  if (const auto* o = dynamic_cast<const BatchNormApply*>(&op))
    return apply(o->relu(), o->residual(), {});
  if (const auto* o = dynamic_cast<const BatchNormInference*>(&op))
    return apply(o->relu(), o->residual(), o->epsilon());
  if (const auto* o = dynamic_cast<const BatchNormGradReduce*>(&op))
    return choose(o->relu(), o->two(), [&](auto relu, auto two) -> Make {
      return [view] {
        return std::make_unique<GradReduceKernel<T, decltype(relu)::value, decltype(two)::value>>(
            view);
      };
    });
  if (dynamic_cast<const BatchNormGradApply*>(&op) != nullptr)
    return [view] { return std::make_unique<GradApplyKernel<T>>(view); };
  return {};
}

/// Why these operands do not fit; empty if they do. Operands like y are activations, the others per
/// channel.
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

bool append_batch_norm_candidates(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates) {
  if (!request.op->name().starts_with("batch_norm_")) return false;
  KernelCandidate c{"cpu:" + std::string(request.op->name()),
                    refusal_of_norm(request),
                    request.in,
                    request.out,
                    {}};
  if (c.refusal.empty()) {
    const ChannelView view = channel_view(request.in[0]);
    c.make = request.in[0].dtype == DType::f32 ? make_for<float>(*request.op, view)
                                               : make_for<bf16>(*request.op, view);
    if (!c.make) return false;
  }
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace tutti
