#pragma once
// Walks the parameters of one op for update kernels: all elements, or blocks of sums, inside the
// call's window, side by side as one line that the parts share. For files compiled without
// contraction to fused multiply-adds: every element then gets the same bits wherever a share or a
// window begins, be it in a vectorised loop or in its remainder.

#include <algorithm>
#include <vector>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/update.h"

namespace tutti::backend {

/// A stretch of one parameter.
struct Stretch {
  size_t parameter;
  float* __restrict w;
  const float* __restrict g;
  float* __restrict s1;
  float* __restrict s2;
  int64_t n;
};

class UpdateList {
 public:
  UpdateList(const KernelRequest& r, const ops::Update& op)
      : leading_(static_cast<size_t>(op.leading())), arity_(static_cast<size_t>(op.arity())),
        states_(op.states()) {
    for (size_t i = leading_; i < r.in.size(); i += arity_) {
      parameters_.push_back({r.in[i].layout.storage_elements(r.in[i].shape), blocks_});
      blocks_ += sum_blocks(parameters_.back().elements);
    }
  }

  int64_t blocks() const { return blocks_; }  ///< blocks of all parameters

  /// Calls f(stretch) for this part's share of the elements inside the window.
  template <class F>
  void for_share(const KernelArgs& args, F f) const {
    deal(
        args, [](Range inside) { return inside; },
        [&](size_t p, Range r) { f(stretch(args, p, r.first, r.last)); });
  }

  /// Calls f(stretch, block) for each block of this part's share of the blocks inside the window.
  template <class F>
  void for_blocks(const KernelArgs& args, F f) const {
    deal(args, blocks_of, [&](size_t p, Range r) {
      for (int64_t b = r.first; b < r.last; ++b)
        f(stretch(args, p, b * kSumBlock, std::min((b + 1) * kSumBlock, parameters_[p].elements)),
          parameters_[p].first_block + b);
    });
  }

  /// Calls f(block) for every block outside the window.
  template <class F>
  void for_blocks_outside(const KernelArgs& args, F f) const {
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const Range in = blocks_of(inside(args, p));
      for (int64_t b = 0; b < sum_blocks(parameters_[p].elements); ++b)
        if (b < in.first || b >= in.last) f(parameters_[p].first_block + b);
    }
  }

  /// Returns the tree's sum of column 0 or 1 of the parameter's rows in `sums`, [blocks(), 2].
  double sum(const float* sums, size_t parameter, int column) const {
    const Parameter& p = parameters_[parameter];
    return tree_sum(p.first_block, p.first_block + sum_blocks(p.elements),
                    [&](int64_t b) { return static_cast<double>(sums[2 * b + column]); });
  }

 private:
  struct Parameter {
    int64_t elements, first_block;
  };
  struct Range {
    int64_t first, last;
  };

  static Range blocks_of(Range elements) {
    return {elements.first / kSumBlock, elements.first < elements.last
                                            ? sum_blocks(elements.last)
                                            : elements.first / kSumBlock};
  }

  Range inside(const KernelArgs& args, size_t p) const {
    const auto [first, last] =
        args.window.inside(args.in[leading_ + p * arity_], parameters_[p].elements);
    return {first, last};
  }

  Stretch stretch(const KernelArgs& args, size_t p, int64_t begin, int64_t end) const {
    void* const* const operand = args.in + leading_ + p * arity_;
    const auto at = [&](size_t i) { return static_cast<float*>(operand[i]) + begin; };
    return {p,          at(0), at(1), states_ > 0 ? at(2) : nullptr, states_ > 1 ? at(3) : nullptr,
            end - begin};
  }

  /// Each parameter has units(inside) work items; calls f(parameter, range) for this part's
  /// share of the items of all parameters.
  template <class Units, class F>
  void deal(const KernelArgs& args, Units units, F f) const {
    int64_t total = 0;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const Range r = units(inside(args, p));
      total += r.last - r.first;
    }
    const auto [begin, end] = share(total, args.thread, args.threads);
    int64_t before = 0;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const Range r = units(inside(args, p));
      const int64_t n = r.last - r.first, from = std::max(begin - before, int64_t{0}),
                    to = std::min(end - before, n);
      if (from < to) f(p, Range{r.first + from, r.first + to});
      before += n;
    }
  }

  size_t leading_, arity_;
  int states_;
  std::vector<Parameter> parameters_;
  int64_t blocks_ = 0;
};

inline float update_scalar(const KernelArgs& args, size_t i) {
  return *static_cast<const float*>(args.in[i]);
}

/// Returns the learning rate of a group of parameters.
inline float update_rate(const KernelArgs& args, double factor) {
  return update_scalar(args, 0) * static_cast<float>(factor);
}

/// A kernel of an update with attributes.
template <class A>
class UpdateKernel : public Kernel {
 public:
  UpdateKernel(const KernelRequest& r, const ops::Update& op, const A& a) : list_(r, op), a_(a) {}

 protected:
  UpdateList list_;
  A a_;
};

/// Accepts if each parameter, its gradient and its states have the same layout.
template <class K, class O>
KernelCandidate make_update(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:update");
  const auto leading = static_cast<size_t>(op.leading()), arity = static_cast<size_t>(op.arity());
  for (size_t i = leading; i < r.in.size(); ++i) {
    const TensorDesc& w = r.in[i - (i - leading) % arity];
    if (!(r.in[i] == w))
      c.refusal = fmt::format("a parameter is {} and its gradient or state {}", w, r.in[i]);
  }
  c.make = [r, op] { return std::make_unique<K>(r, op); };
  return c;
}

}  // namespace tutti::backend
