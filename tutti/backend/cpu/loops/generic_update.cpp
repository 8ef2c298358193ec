// Elementwise optimizer updates, over whatever layout the parameters have, padding included (zeros
// stay zeros).

#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/update_list.h"

namespace tutti::backend {
namespace {

/// Limits each element of a gradient to between -limit and limit; NaN stays NaN.
struct GradientLimit {
  explicit GradientLimit(double clip)
      : limit(clip > 0 ? static_cast<float>(clip) : std::numeric_limits<float>::infinity()) {}
  float operator()(float g) const { return std::min(std::max(g, -limit), limit); }
  const float limit;
};

class SgdKernel final : public UpdateKernel<ops::SgdAttributes> {
 public:
  SgdKernel(const KernelRequest& r, const ops::SgdUpdate& op) : UpdateKernel(r, op, op.sgd()) {}
  void run(const KernelArgs& args) override {
    const float lr = update_rate(args, a_.rate), scale = update_scalar(args, 1);
    const auto momentum = static_cast<float>(a_.momentum),
               decay = static_cast<float>(a_.weight_decay);
    const GradientLimit limited(a_.clip);
    list_.for_share(args, [&](const Stretch& s) {
      if (momentum == 0) {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) s.w[i] -= lr * (limited(s.g[i] * scale) + decay * s.w[i]);
      } else if (a_.nesterov) {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) {
          const float d = limited(s.g[i] * scale) + decay * s.w[i], buf = momentum * s.s1[i] + d;
          s.s1[i] = buf;
          s.w[i] -= lr * (d + momentum * buf);
        }
      } else {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) {
          const float buf = momentum * s.s1[i] + (limited(s.g[i] * scale) + decay * s.w[i]);
          s.s1[i] = buf;
          s.w[i] -= lr * buf;
        }
      }
    });
  }
};

class AdamKernel final : public UpdateKernel<ops::AdamAttributes> {
 public:
  AdamKernel(const KernelRequest& r, const ops::AdamUpdate& op) : UpdateKernel(r, op, op.adam()) {}
  void run(const KernelArgs& args) override {
    const float lr = update_rate(args, a_.rate), scale = update_scalar(args, 1);
    const double t = static_cast<double>(args.step->step + 1);
    const auto step = static_cast<float>(static_cast<double>(lr) / (1 - std::pow(a_.beta1, t)));
    const auto root = static_cast<float>(1 / std::sqrt(1 - std::pow(a_.beta2, t)));
    const auto beta1 = static_cast<float>(a_.beta1), beta2 = static_cast<float>(a_.beta2),
               eps = static_cast<float>(a_.eps);
    const auto new1 = static_cast<float>(1 - a_.beta1), new2 = static_cast<float>(1 - a_.beta2);
    const auto shrink =
        static_cast<float>(a_.decoupled ? 1 - static_cast<double>(lr) * a_.weight_decay : 1.0);
    const auto decay = static_cast<float>(a_.decoupled ? 0.0 : a_.weight_decay);
    const GradientLimit limited(a_.clip);
    list_.for_share(args, [&](const Stretch& s) {
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) {
        const float g = limited(s.g[i] * scale) + decay * s.w[i];
        const float m = beta1 * s.s1[i] + new1 * g, v = beta2 * s.s2[i] + new2 * g * g;
        s.s1[i] = m;
        s.s2[i] = v;
        s.w[i] = shrink * s.w[i] - step * m / (std::sqrt(v) * root + eps);
      }
    });
  }
};

class RmspropKernel final : public UpdateKernel<ops::RmspropAttributes> {
 public:
  RmspropKernel(const KernelRequest& r, const ops::RmspropUpdate& op)
      : UpdateKernel(r, op, op.rmsprop()) {}
  void run(const KernelArgs& args) override {
    const float lr = update_rate(args, a_.rate), scale = update_scalar(args, 1);
    const auto rho = static_cast<float>(a_.rho), fresh = static_cast<float>(1 - a_.rho),
               eps = static_cast<float>(a_.eps), decay = static_cast<float>(a_.weight_decay);
    const GradientLimit limited(a_.clip);
    list_.for_share(args, [&](const Stretch& s) {
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) {
        const float g = limited(s.g[i] * scale) + decay * s.w[i], v = rho * s.s1[i] + fresh * g * g;
        s.s1[i] = v;
        s.w[i] -= lr * g / (std::sqrt(v) + eps);
      }
    });
  }
};

/// Reads the weights that the preceding update has written in the same share, on the same thread.
class WeightAverageKernel final : public UpdateKernel<ops::WeightAverageAttributes> {
 public:
  WeightAverageKernel(const KernelRequest& r, const ops::WeightAverage& op)
      : UpdateKernel(r, op, op.average()) {}
  void run(const KernelArgs& args) override {
    const float part = args.step->step < a_.from ? 1.0f : static_cast<float>(1 - a_.decay);
    list_.for_share(args, [&](const Stretch& s) {
      if (part == 1) return (void)std::copy_n(s.w, s.n, s.s1);
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) s.s1[i] += part * (s.w[i] - s.s1[i]);
    });
  }
};

}  // namespace

void register_update_kernels(KernelTable& table) {
  table.add<ops::SgdUpdate>(make_update<SgdKernel, ops::SgdUpdate>);
  table.add<ops::AdamUpdate>(make_update<AdamKernel, ops::AdamUpdate>);
  table.add<ops::RmspropUpdate>(make_update<RmspropKernel, ops::RmspropUpdate>);
  table.add<ops::WeightAverage>(make_update<WeightAverageKernel, ops::WeightAverage>);
}

}  // namespace tutti::backend
