// Group norm, sample by sample: sums of each channel, from which the statistics of the groups
// follow, and a pass that applies them. A sample stays in cache between its passes.

#include "tutti/ops/group_norm.h"

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"

namespace tutti::backend {
namespace {

using simd::Floats;

/// The numbers of a sample's channels, and of their groups, spread over the channels.
struct GroupNumbers {
  float *mean, *inverse, *sum, *product;
};

template <class T>
struct GroupSum {
  const T* x;
  GroupNumbers to;

  struct Params {};
  struct Sums {
    Floats x;
  };
  Params params(const ChannelLanes&) const { return {}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params&, Sums& s, int64_t at, Lanes lanes) const {
    s.x += simd::load(x + at, lanes);  // lanes not loaded are 0
  }
  static void merge(Sums& a, const Sums& b) { a.x += b.x; }
  void done(const ChannelLanes& lanes, const Params&, const Sums& s) const {
    lanes.each(s.x, [&](int64_t c, float v) { to.sum[c] = v; });
  }
};

/// A second pass: a difference of large sums would lose the variance of channels far from 0.
template <class T>
struct GroupSquares {
  const T* x;
  GroupNumbers to;

  struct Params {
    Floats mean;
  };
  struct Sums {
    Floats squares;
  };
  Params params(const ChannelLanes& lanes) const { return {lanes.read(to.mean)}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums& s, int64_t at, Lanes lanes) const {
    const Floats d = simd::first_lanes(simd::load(x + at, lanes) - p.mean, lanes.n);
    s.squares += d * d;
  }
  static void merge(Sums& a, const Sums& b) { a.squares += b.squares; }
  void done(const ChannelLanes& lanes, const Params&, const Sums& s) const {
    lanes.each(s.squares, [&](int64_t c, float v) { to.sum[c] = v; });
  }
};

template <class T>
struct GroupApply {
  const T* x;
  const float *gamma, *beta;
  GroupNumbers of;
  T* y;

  struct Params {
    Floats mean, scale, beta;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const {
    return {lanes.read(of.mean), lanes.read(of.inverse) * lanes.read(gamma), lanes.read(beta)};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    simd::store(y + at, (simd::load(x + at, lanes) - p.mean) * p.scale + p.beta, lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

/// Sums of dy and of dy times the normalised x.
template <class T>
struct GroupGradSums {
  const T *dy, *x;
  GroupNumbers of;

  struct Params {
    Floats mean, inverse;
  };
  struct Sums {
    Floats dy, product;
  };
  Params params(const ChannelLanes& lanes) const {
    return {lanes.read(of.mean), lanes.read(of.inverse)};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums& s, int64_t at, Lanes lanes) const {
    const Floats d = simd::load(dy + at, lanes);
    s.dy += d;
    s.product += d * (simd::load(x + at, lanes) - p.mean) * p.inverse;
  }
  static void merge(Sums& a, const Sums& b) {
    a.dy += b.dy;
    a.product += b.product;
  }
  void done(const ChannelLanes& lanes, const Params&, const Sums& s) const {
    lanes.each(s.dy, [&](int64_t c, float v) { of.sum[c] = v; });
    lanes.each(s.product, [&](int64_t c, float v) { of.product[c] = v; });
  }
};

/// dx = inverse * (dy * gamma - all - z * along), z the normalised x; `all` and `along` are means
/// over the group, in `sum` and `product`.
template <class T>
struct GroupGradApply {
  const T *dy, *x;
  const float* gamma;
  GroupNumbers of;
  T* dx;

  struct Params {
    Floats mean, inverse, gamma, all, along;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const {
    return {lanes.read(of.mean), lanes.read(of.inverse), lanes.read(gamma), lanes.read(of.sum),
            lanes.read(of.product)};
  }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    const Floats z = (simd::load(x + at, lanes) - p.mean) * p.inverse;
    simd::store(dx + at, p.inverse * (simd::load(dy + at, lanes) * p.gamma - p.all - z * p.along),
                lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

/// The common part of both directions.
class GroupKernel : public Kernel {
 public:
  GroupKernel(const TensorDesc& x, const ops::GroupNormAttributes& a)
      : a_(a), samples_(x.shape[0]), sample_(channel_view(x)) {
    sample_.samples = 1;
  }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(4 * sample_.channels) * sizeof(float);
  }

 protected:
  GroupNumbers numbers(const KernelArgs& args) const {
    auto* const memory = static_cast<float*>(args.workspace);
    const int64_t c = sample_.channels;
    return {memory, memory + c, memory + 2 * c, memory + 3 * c};
  }
  /// Returns the elements of a sample.
  int64_t elements() const { return sample_.channels * sample_.positions; }

  /// Calls set(channel, mean of `of` over the channel's group), where of(c) is a channel's sum.
  template <class Of, class Set>
  void for_groups(Of of, Set set) const {
    const int64_t channels = sample_.channels / a_.groups;
    const auto count = static_cast<double>(channels * sample_.positions);
    for (int64_t g = 0; g < a_.groups; ++g) {
      double sum = 0;
      for (int64_t c = g * channels; c < (g + 1) * channels; ++c) sum += of(c);
      for (int64_t c = g * channels; c < (g + 1) * channels; ++c) set(c, sum / count);
    }
  }

  /// Finds the mean and 1 / sqrt(variance + epsilon) of each channel's group.
  template <class T>
  void find_statistics(const T* x, const GroupNumbers& n) const {
    const auto sum = [&](int64_t c) { return static_cast<double>(n.sum[c]); };
    GroupSum<T> sums{x, n};
    walk_tile(sample_, sums);
    for_groups(sum, [&](int64_t c, double mean) { n.mean[c] = static_cast<float>(mean); });
    GroupSquares<T> squares{x, n};
    walk_tile(sample_, squares);
    for_groups(sum, [&](int64_t c, double variance) {
      n.inverse[c] = static_cast<float>(1 / std::sqrt(variance + static_cast<double>(a_.epsilon)));
    });
  }

  ops::GroupNormAttributes a_;
  int64_t samples_;
  ChannelView sample_;
};

template <class T>
class GroupNormKernel final : public GroupKernel {
 public:
  GroupNormKernel(const KernelRequest& r, const ops::GroupNormAttributes& a)
      : GroupKernel(r.in[0], a) {}
  void run(const KernelArgs& args) override {
    const GroupNumbers n = numbers(args);
    for (int64_t i = 0; i < samples_ * elements(); i += elements()) {
      const T* const x = input_of<T>(args, 0) + i;
      find_statistics(x, n);
      GroupApply<T> pass{x, input_of<float>(args, 1), input_of<float>(args, 2), n,
                         static_cast<T*>(args.out[0]) + i};
      walk_tile(sample_, pass);
    }
  }
};

/// The state: dgamma, then dbeta.
template <class T>
class GroupNormGradKernel final : public GroupKernel {
 public:
  GroupNormGradKernel(const KernelRequest& r, const ops::GroupNormAttributes& a)
      : GroupKernel(r.in[1], a) {}
  size_t state_bytes() const override {
    return static_cast<size_t>(2 * sample_.channels) * sizeof(double);
  }
  void run(const KernelArgs& args) override {
    const int64_t channels = sample_.channels;
    auto* const state = static_cast<double*>(args.state);
    if (args.first) std::fill_n(state, 2 * channels, 0.0);
    const GroupNumbers n = numbers(args);
    const auto* const gamma = input_of<float>(args, 2);
    for (int64_t i = 0; i < samples_ * elements(); i += elements()) {
      const T *const dy = input_of<T>(args, 0) + i, *const x = input_of<T>(args, 1) + i;
      find_statistics(x, n);
      GroupGradSums<T> sums{dy, x, n};
      walk_tile(sample_, sums);
      for (int64_t c = 0; c < channels; ++c) {
        state[c] += n.product[c];
        state[channels + c] += n.sum[c];
      }
      for (float* const number : {n.sum, n.product})
        for_groups([&](int64_t c) { return static_cast<double>(number[c] * gamma[c]); },
                   [&](int64_t c, double mean) { number[c] = static_cast<float>(mean); });
      GroupGradApply<T> pass{dy, x, gamma, n, static_cast<T*>(args.out[0]) + i};
      walk_tile(sample_, pass);
    }
  }
  void finish(const FinishArgs& args) override {
    const ChannelShare part(sample_.channels, args);
    for (int64_t c = part.begin; c < part.end; ++c)
      for (int64_t o = 0; o < 2; ++o) {
        double sum = 0;
        for (const void* const state : args.states)
          sum += static_cast<const double*>(state)[o * sample_.channels + c];
        static_cast<float*>(args.out[1 + o])[c] = static_cast<float>(sum);
      }
  }
};

template <template <class> class K, class O>
KernelCandidate group_norm_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:group_norm");
  const TensorDesc& x = r.in[0];
  if (x.layout.channel_block(x.shape) == 0)
    c.refusal =
        fmt::format("layout {} is not [N, C/b, positions, b]", x.layout.to_string(x.shape.rank()));
  for (const auto* side : {&c.in, &c.out})
    for (const TensorDesc& d : *side)
      if (d.shape.rank() > 1 ? d != x : !d.layout.is_plain())
        c.refusal = fmt::format("operand {} does not go with {}", d.to_string(), x.to_string());
  choose_kernel<K>(c, x.dtype, "norm", r, op.norm());
  return c;
}

}  // namespace

void register_group_norm_kernels(KernelTable& table) {
  table.add<ops::GroupNorm>(group_norm_kernel<GroupNormKernel, ops::GroupNorm>);
  table.add<ops::GroupNormGrad>(group_norm_kernel<GroupNormGradKernel, ops::GroupNormGrad>);
}

}  // namespace tutti::backend
