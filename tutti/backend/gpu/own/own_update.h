#pragma once
// Own kernels of updates share these: the parameters of an op and launches by a rule. Elementwise
// work is the same in any layout, padding included.

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/backend/gpu/kernels/updates.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/device/launch.h"
#include "tutti/graph/graph.h"
#include "tutti/ops/update.h"

namespace tutti::backend {

static_assert(kUpdateBlock == kSumBlock);

/// The parameters of an update, in the order of its inputs.
class UpdatedParameters {
 public:
  UpdatedParameters(const KernelRequest& r, const ops::Update& op)
      : leading_(static_cast<size_t>(op.leading())), arity_(static_cast<size_t>(op.arity())) {
    for (size_t i = leading_; i < r.in.size(); i += arity_)
      elements_.push_back(r.in[i].layout.storage_elements(r.in[i].shape));
  }

  size_t count() const { return elements_.size(); }
  int64_t elements(size_t p) const { return elements_[p]; }
  /// Returns operand `i` of parameter p: w, g, or a state.
  float* operand(const KernelArgs& args, size_t p, size_t i) const {
    return i < arity_ ? static_cast<float*>(args.in[leading_ + p * arity_ + i]) : nullptr;
  }
  /// Returns which elements of parameter p the call's window leaves: [first, last).
  std::pair<int64_t, int64_t> inside(const KernelArgs& args, size_t p) const {
    return args.window.inside(operand(args, p, 0), elements_[p]);
  }

 private:
  size_t leading_, arity_;
  std::vector<int64_t> elements_;
};

inline const float* scalar_input(const KernelArgs& args, size_t i) {
  return static_cast<const float*>(args.in[i]);
}

inline float as_float(double x) { return static_cast<float>(x); }

/// Returns how many elements `at` lies behind `from`, modulo 2^32; 0 for two null pointers.
inline int32_t distance(const float* from, const float* at) {
  return static_cast<int32_t>(
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(from)) /
      int64_t{sizeof(float)});
}

/// Whether a stretch of these operands can be in the launch: each of them lies at a distance of 32
/// bits from the first stretch's, and both states at the same.
inline bool is_near(const UpdateStretches& list, const UpdateOperands& at) {
  const UpdateOperands& first = list.first;
  return list.count == 0 ||
         (first.w + distance(first.w, at.w) == at.w && first.g + distance(first.g, at.g) == at.g &&
          first.s1 + distance(first.s1, at.s1) == at.s1 &&
          (!first.s2 || first.s2 + distance(first.s1, at.s1) == at.s2));
}

/// An update by a rule, of kMostStretches parameters a launch.
template <class Rule>
class OwnUpdate : public Kernel {
 public:
  OwnUpdate(const device::DeviceFunction& function, const KernelRequest& r, const ops::Update& op,
            const Rule& rule)
      : parameters_(r, op), function_(function), rule_(rule) {}
  void run(const KernelArgs& args) override { put(args, rule_); }

 protected:
  void put(const KernelArgs& args, const Rule& rule) const {
    UpdateArgs<Rule> a{scalar_input(args, 0), scalar_input(args, 1), rule, {}};
    UpdateStretches& list = a.stretches;
    uint32_t blocks = 0;
    const auto launch = [&] {
      if (blocks > 0) device::launch(*args.stream, function_, {blocks}, a);
      list.count = blocks = 0;
    };
    for (size_t p = 0; p < parameters_.count(); ++p) {
      const auto [first, last] = parameters_.inside(args, p);
      if (first == last) continue;
      const auto at = [&, begin = first](size_t i) {
        float* const operand = parameters_.operand(args, p, i);
        return operand ? operand + begin : nullptr;
      };
      const UpdateOperands operands{at(0), at(1), at(2), at(3)};
      if (list.count == kMostStretches || !is_near(list, operands)) launch();
      if (list.count == 0) list.first = operands;
      list.at[list.count++] = {.w = distance(list.first.w, operands.w),
                               .g = distance(list.first.g, operands.g),
                               .s = distance(list.first.s1, operands.s1),
                               .count = static_cast<uint32_t>(last - first),
                               .first_block = blocks,
                               .parameter = static_cast<uint32_t>(p)};
      blocks += static_cast<uint32_t>(sum_blocks(last - first));
    }
    launch();
  }

  UpdatedParameters parameters_;
  const device::DeviceFunction& function_;
  Rule rule_;
};

/// Accepts if each parameter, its gradient and its states have the same layout.
inline KernelCandidate update_candidate(const KernelRequest& r, const ops::Update& op) {
  KernelCandidate c = own_candidate(r, "update");
  const auto leading = static_cast<size_t>(op.leading()), arity = static_cast<size_t>(op.arity());
  for (size_t i = leading; i < r.in.size(); ++i) {
    const TensorDesc& w = r.in[i - (i - leading) % arity];
    if (w.layout.storage_elements(w.shape) > std::numeric_limits<uint32_t>::max())
      c.refusal = fmt::format("a parameter is {}, too many elements for one", w.to_string());
    if (!(r.in[i] == w))
      c.refusal = fmt::format("a parameter is {} and its gradient or state {}", w.to_string(),
                              r.in[i].to_string());
  }
  return c;
}

/// Returns a candidate for the kernel K, which is made of a function, the op, its rule and `more`.
template <class K, class O, class Rule, class... More>
KernelCandidate ruled_update(const KernelRequest& r, const O& op,
                             const device::DeviceFunction& function, const Rule& rule,
                             const More&... more) {
  KernelCandidate c = update_candidate(r, op);
  c.make = [r, op, &function, rule, &more...] {
    return std::make_unique<K>(function, r, op, rule, more...);
  };
  return c;
}

}  // namespace tutti::backend
