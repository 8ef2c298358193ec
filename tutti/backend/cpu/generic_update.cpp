// Optimizer updates: elementwise over whatever layout the parameters have, padding included (zeros stay zeros).

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/update.h"

namespace tutti {
namespace {

/// A stretch of one parameter.
struct Stretch {
  float* __restrict w;
  const float* __restrict g;
  float* __restrict s1;
  float* __restrict s2;
  int64_t n;
};

/// The parameters of one update op, side by side as one line of elements that parts share.
class ParameterList {
 public:
  ParameterList(const KernelRequest& r, const Update& op) : arity_(static_cast<size_t>(op.arity())), states_(op.states()) {
    for (size_t i = Update::kScalars; i < r.in.size(); i += arity_) sizes_.push_back(r.in[i].layout.storage_elements(r.in[i].shape));
    for (const int64_t n : sizes_) total_ += n;
  }
  size_t count() const { return sizes_.size(); }
  int64_t size(size_t p) const { return sizes_[p]; }
  int64_t total() const { return total_; }

  Stretch stretch(const KernelArgs& args, size_t p, int64_t begin, int64_t end) const {
    void* const* const operand = args.in + Update::kScalars + p * arity_;
    const auto at = [&](size_t i) { return static_cast<float*>(operand[i]) + begin; };
    return {at(0), at(1), states_ > 0 ? at(2) : nullptr, states_ > 1 ? at(3) : nullptr, end - begin};
  }

  /// f(stretch) for this part's share of all elements.
  template <class F>
  void for_share(const KernelArgs& args, F f) const {
    const auto [begin, end] = share(total_, args.part, args.parts);
    int64_t first = 0;
    for (size_t p = 0; p < sizes_.size(); first += sizes_[p], ++p) {
      const int64_t from = std::max(begin - first, int64_t{0}), to = std::min(end - first, sizes_[p]);
      if (from < to) f(stretch(args, p, from, to));
    }
  }

 private:
  size_t arity_;
  int states_;
  std::vector<int64_t> sizes_;
  int64_t total_ = 0;
};

float scalar(const KernelArgs& args, size_t i) { return *static_cast<const float*>(args.in[i]); }

class SgdKernel final : public Kernel {
 public:
  SgdKernel(const KernelRequest& r, const SgdUpdate& op) : list_(r, op), a_(op.sgd()) {}
  void run(const KernelArgs& args) override {
    const float lr = scalar(args, 0), scale = scalar(args, 1);
    const auto momentum = static_cast<float>(a_.momentum), decay = static_cast<float>(a_.weight_decay);
    list_.for_share(args, [&](const Stretch& s) {
      if (momentum == 0) {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) s.w[i] -= lr * (s.g[i] * scale + decay * s.w[i]);
      } else if (a_.nesterov) {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) {
          const float d = s.g[i] * scale + decay * s.w[i], buf = momentum * s.s1[i] + d;
          s.s1[i] = buf;
          s.w[i] -= lr * (d + momentum * buf);
        }
      } else {
#pragma omp simd
        for (int64_t i = 0; i < s.n; ++i) {
          const float buf = momentum * s.s1[i] + (s.g[i] * scale + decay * s.w[i]);
          s.s1[i] = buf;
          s.w[i] -= lr * buf;
        }
      }
    });
  }

 private:
  ParameterList list_;
  SgdAttributes a_;
};

class AdamKernel final : public Kernel {
 public:
  AdamKernel(const KernelRequest& r, const AdamUpdate& op) : list_(r, op), a_(op.adam()) {}
  void run(const KernelArgs& args) override {
    const float lr = scalar(args, 0), scale = scalar(args, 1);
    const double t = static_cast<double>(args.step->step + 1);
    const auto step = static_cast<float>(static_cast<double>(lr) / (1 - std::pow(a_.beta1, t)));
    const auto root = static_cast<float>(1 / std::sqrt(1 - std::pow(a_.beta2, t)));
    const auto beta1 = static_cast<float>(a_.beta1), beta2 = static_cast<float>(a_.beta2), eps = static_cast<float>(a_.eps);
    const auto new1 = static_cast<float>(1 - a_.beta1), new2 = static_cast<float>(1 - a_.beta2);
    const auto shrink = static_cast<float>(a_.decoupled ? 1 - static_cast<double>(lr) * a_.weight_decay : 1.0);
    const auto decay = static_cast<float>(a_.decoupled ? 0.0 : a_.weight_decay);
    list_.for_share(args, [&](const Stretch& s) {
#pragma omp simd
      for (int64_t i = 0; i < s.n; ++i) {
        const float g = s.g[i] * scale + decay * s.w[i];
        const float m = beta1 * s.s1[i] + new1 * g, v = beta2 * s.s2[i] + new2 * g * g;
        s.s1[i] = m;
        s.s2[i] = v;
        s.w[i] = shrink * s.w[i] - step * m / (std::sqrt(v) * root + eps);
      }
    });
  }

 private:
  ParameterList list_;
  AdamAttributes a_;
};

/// Sum of squares in blocks of 4096 that a binary tree adds: the same bits whoever computes which part.
double sum_of_squares(const float* x, int64_t n) {
  constexpr int64_t kBlock = 4096;
  if (n > kBlock) {
    int64_t half = kBlock;
    while (half * 2 < n) half *= 2;
    return sum_of_squares(x, half) + sum_of_squares(x + half, n - half);
  }
  double lanes[16]{};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
#pragma omp simd
    for (int k = 0; k < 16; ++k) lanes[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (int k = 0; i < n; ++i, ++k) lanes[k] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int width = 8; width > 0; width /= 2)
    for (int k = 0; k < width; ++k) lanes[k] += lanes[k + width];
  return lanes[0];
}

/// A parameter belongs to one part, because its norms must be known before its first element changes.
class LarsKernel final : public Kernel {
 public:
  LarsKernel(const KernelRequest& r, const LarsUpdate& op) : list_(r, op), a_(op.lars()) {}
  void run(const KernelArgs& args) override {
    const auto [begin, end] = share(list_.total(), args.part, args.parts);
    int64_t first = 0;
    for (size_t p = 0; p < list_.count(); first += list_.size(p), ++p) {
      const int64_t middle = first + list_.size(p) / 2;
      if (middle >= begin && (middle < end || args.part + 1 == args.parts)) update(args, list_.stretch(args, p, 0, list_.size(p)));
    }
  }

 private:
  void update(const KernelArgs& args, const Stretch& s) const {
    const float lr = scalar(args, 0), scale = scalar(args, 1);
    const double w_norm = std::sqrt(sum_of_squares(s.w, s.n)), g_norm = std::abs(static_cast<double>(scale)) * std::sqrt(sum_of_squares(s.g, s.n));
    const double local = w_norm > 0 && g_norm > 0 ? a_.trust * w_norm / (g_norm + a_.weight_decay * w_norm + a_.eps) : 1;
    const auto rate = static_cast<float>(lr * local), momentum = static_cast<float>(a_.momentum), decay = static_cast<float>(a_.weight_decay);
#pragma omp simd
    for (int64_t i = 0; i < s.n; ++i) {
      const float v = momentum * s.s1[i] + rate * (s.g[i] * scale + decay * s.w[i]);
      s.s1[i] = v;
      s.w[i] -= v;
    }
  }

  ParameterList list_;
  LarsAttributes a_;
};

template <class K, class O>
KernelCandidate make_update(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:update");
  const auto arity = static_cast<size_t>(op.arity());
  for (size_t i = Update::kScalars; i < r.in.size(); ++i) {
    const TensorDesc& w = r.in[i - (i - Update::kScalars) % arity];
    if (!(r.in[i] == w)) c.refusal = fmt::format("a parameter is {} and its gradient or state {}", w.to_string(), r.in[i].to_string());
  }
  c.make = [r, op] { return std::make_unique<K>(r, op); };
  return c;
}

}  // namespace

bool append_update_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  if (const auto* op = dynamic_cast<const SgdUpdate*>(r.op))
    candidates.push_back(make_update<SgdKernel>(r, *op));
  else if (const auto* op = dynamic_cast<const LarsUpdate*>(r.op))
    candidates.push_back(make_update<LarsKernel>(r, *op));
  else if (const auto* op = dynamic_cast<const AdamUpdate*>(r.op))
    candidates.push_back(make_update<AdamKernel>(r, *op));
  else
    return false;
  return true;
}

}  // namespace tutti
