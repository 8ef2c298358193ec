// LARS and LAMB in two ops each: block sums of squares, then the update with the norms. The parts
// share blocks in the first and elements in the second, so that all threads work on every
// parameter. Also clips by the norm over all parameters.

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/update_list.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/norm_update.h"

namespace tutti::backend {
namespace {

/// Returns the sum of at most kSumBlock squares, in 16 sums of every 16th that a tree adds.
/// Products of two floats are exact in double.
float sum_of_squares(const float* x, int64_t n) {
  double lanes[16]{};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
#pragma omp simd
    for (int k = 0; k < 16; ++k)
      lanes[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (int k = 0; i < n; ++i, ++k)
    lanes[k] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int width = 8; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  return static_cast<float>(lanes[0]);
}

/// Calls `squares(stretch)` for each block of this part; it returns the block's sums, an array.
template <class F>
void write_sums(const UpdateList& list, const KernelArgs& args, F squares) {
  using Sums = std::invoke_result_t<F, const Stretch&>;
  auto* const sums = static_cast<float*>(args.out[0]);
  const auto put = [sums](int64_t block, const Sums& of_block) {
    std::ranges::copy(of_block, sums + block * std::ssize(of_block));
  };
  if (args.thread == 0) list.for_blocks_outside(args, [&](int64_t block) { put(block, Sums{}); });
  list.for_blocks(args, [&](const Stretch& s, int64_t block) { put(block, squares(s)); });
}

/// The two norms of a stretch's parameter, from the sums that the second op reads.
struct Norms {
  double first, second;
  Norms(const UpdateList& list, const KernelArgs& args, const Stretch& s)
      : Norms(list, static_cast<const float*>(args.in[ops::Update::kScalars]), s.parameter) {}

 private:
  Norms(const UpdateList& list, const float* sums, size_t parameter)
      : first(std::sqrt(list.sum(sums, parameter, 0))),
        second(std::sqrt(list.sum(sums, parameter, 1))) {}
};

class ParameterNormsKernel final : public Kernel {
 public:
  ParameterNormsKernel(const KernelRequest& r, const ops::ParameterNorms& op) : list_(r, op) {}
  void run(const KernelArgs& args) override {
    write_sums(list_, args, [](const Stretch& s) {
      return std::array{sum_of_squares(s.w, s.n), sum_of_squares(s.g, s.n)};
    });
  }

 private:
  UpdateList list_;
};

class GradientSquaresKernel final : public Kernel {
 public:
  GradientSquaresKernel(const KernelRequest& r, const ops::GradientSquares& op) : list_(r, op) {}
  void run(const KernelArgs& args) override {
    write_sums(list_, args, [](const Stretch& s) { return std::array{sum_of_squares(s.g, s.n)}; });
  }

 private:
  UpdateList list_;
};

/// Takes one thread: a few additions for each thousand gradients.
class ClipScaleKernel final : public Kernel {
 public:
  ClipScaleKernel(const KernelRequest& r, const ops::ClipScale& op)
      : blocks_(op.blocks(r.in)), limit_(op.limit()) {}
  void run(const KernelArgs& args) override {
    if (args.thread != 0) return;
    const float scale = update_scalar(args, 0);
    const double sum = tree_sum(0, std::ssize(blocks_), [&](int64_t p) {
      const ops::ClipScale::Blocks& own = blocks_[static_cast<size_t>(p)];
      const auto* const sums = static_cast<const float*>(args.in[own.input]);
      return tree_sum(own.first, own.first + own.count,
                      [&](int64_t b) { return static_cast<double>(sums[b]); });
    });
    const double norm = std::abs(static_cast<double>(scale)) * std::sqrt(sum),
                 factor = limit_ / (norm + ops::ClipScale::kEps);
    *static_cast<float*>(args.out[0]) = factor < 1 ? static_cast<float>(scale * factor) : scale;
    *static_cast<float*>(args.out[1]) = static_cast<float>(norm);
  }

 private:
  std::vector<ops::ClipScale::Blocks> blocks_;
  double limit_;
};

class LarsKernel final : public UpdateKernel<ops::LarsAttributes> {
 public:
  LarsKernel(const KernelRequest& r, const ops::LarsUpdate& op) : UpdateKernel(r, op, op.lars()) {}
  void run(const KernelArgs& args) override {
    const float lr = update_rate(args, a_.rate), scale = update_scalar(args, 1);
    const auto momentum = static_cast<float>(a_.momentum),
               decay = static_cast<float>(a_.weight_decay);
    list_.for_share(args, [&](const Stretch& s) {
      const Norms norms(list_, args, s);
      const double w_norm = norms.first,
                   g_norm = std::abs(static_cast<double>(scale)) * norms.second;
      const double local = w_norm > 0 && g_norm > 0
                               ? a_.trust * w_norm / (g_norm + a_.weight_decay * w_norm + a_.eps)
                               : 1;
      const auto rate = static_cast<float>(lr * local);
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) {
        const float v = momentum * s.s1[i] + rate * (s.g[i] * scale + decay * s.w[i]);
        s.s1[i] = v;
        s.w[i] -= v;
      }
    });
  }
};

/// Computes the direction u of a LAMB step, elementwise. LambMoments and LambUpdate both compute it
/// from the same new m and v.
struct LambDirection {
  float correction, root, eps, decay;
  LambDirection(const ops::LambAttributes& a, int64_t step)
      : correction(static_cast<float>(1 / (1 - std::pow(a.beta1, static_cast<double>(step + 1))))),
        root(static_cast<float>(1 /
                                std::sqrt(1 - std::pow(a.beta2, static_cast<double>(step + 1))))),
        eps(static_cast<float>(a.eps)), decay(static_cast<float>(a.weight_decay)) {}
  float operator()(float w, float m, float v) const {
    return correction * m / (std::sqrt(v) * root + eps) + decay * w;
  }
};

class LambMomentsKernel final : public UpdateKernel<ops::LambAttributes> {
 public:
  LambMomentsKernel(const KernelRequest& r, const ops::LambMoments& op)
      : UpdateKernel(r, op, op.lamb()) {}
  void run(const KernelArgs& args) override {
    const float scale = update_scalar(args, 1);
    const auto beta1 = static_cast<float>(a_.beta1), beta2 = static_cast<float>(a_.beta2);
    const auto new1 = static_cast<float>(1 - a_.beta1), new2 = static_cast<float>(1 - a_.beta2);
    const LambDirection direction(a_, args.step->step);
    write_sums(list_, args, [&](const Stretch& s) {
      alignas(64) float u[kSumBlock];
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) {
        const float g = s.g[i] * scale;
        const float m = beta1 * s.s1[i] + new1 * g, v = beta2 * s.s2[i] + new2 * g * g;
        s.s1[i] = m;
        s.s2[i] = v;
        u[i] = direction(s.w[i], m, v);
      }
      return std::array{sum_of_squares(s.w, s.n), sum_of_squares(u, s.n)};
    });
  }
};

class LambKernel final : public UpdateKernel<ops::LambAttributes> {
 public:
  LambKernel(const KernelRequest& r, const ops::LambUpdate& op) : UpdateKernel(r, op, op.lamb()) {}
  void run(const KernelArgs& args) override {
    const float lr = update_rate(args, a_.rate);
    const LambDirection direction(a_, args.step->step);
    list_.for_share(args, [&](const Stretch& s) {
      const Norms norms(list_, args, s);
      const auto rate = static_cast<float>(
          lr * (norms.first > 0 && norms.second > 0 ? norms.first / norms.second : 1));
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) s.w[i] -= rate * direction(s.w[i], s.s1[i], s.s2[i]);
    });
  }
};

}  // namespace

void register_norm_update_kernels(KernelTable& table) {
  table.add<ops::ParameterNorms>(make_update<ParameterNormsKernel, ops::ParameterNorms>);
  table.add<ops::GradientSquares>(make_update<GradientSquaresKernel, ops::GradientSquares>);
  table.add<ops::LarsUpdate>(make_update<LarsKernel, ops::LarsUpdate>);
  table.add<ops::LambMoments>(make_update<LambMomentsKernel, ops::LambMoments>);
  table.add<ops::LambUpdate>(make_update<LambKernel, ops::LambUpdate>);
  table.add<ops::ClipScale>([](const KernelRequest& r, const ops::ClipScale& op) {
    KernelCandidate c = candidate_for(r, "cpu:update");
    c.make = [r, op] { return std::make_unique<ClipScaleKernel>(r, op); };
    return c;
  });
}

}  // namespace tutti::backend
