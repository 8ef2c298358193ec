#include "tutti/backend/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/update.h"

namespace tutti::backend {
namespace {

bool contains(const std::vector<size_t>& list, size_t i) {
  return std::ranges::find(list, i) != list.end();
}

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(Rule rule, const KernelRequest& request)
      : rule_(std::move(rule)), totals_(rule_.sums) {
    for (const TensorDesc& desc : request.in) in_.emplace_back(desc);
    for (const TensorDesc& desc : request.out) out_.emplace_back(desc);
    const auto* const update = dynamic_cast<const ops::Update*>(request.op);
    for (size_t i = 0; i < request.in.size(); ++i) {
      if (request.op->mutates(static_cast<int>(i))) mutated_.push_back(i);
      if (!update) continue;
      const auto leading = static_cast<size_t>(update->leading());
      weight_of_.push_back(
          i < leading ? -1
                      : static_cast<int>(i - (i - leading) % static_cast<size_t>(update->arity())));
    }
  }

  size_t state_bytes() const override { return rule_.sums * sizeof(double); }

  void run(const KernelArgs& args) override {
    if (args.thread != 0) return;
    auto* const sums = static_cast<double*>(args.state);
    if (rule_.sums > 0 && args.first) std::fill_n(sums, rule_.sums, 0.0);
    for (size_t i = 0; i < in_.size(); ++i) in_[i].load(args.in[i], places(args, i));
    rule_.run({in_, out_, {sums, rule_.sums}, args.first_sample, args.step ? *args.step : kNoStep});
    for (size_t i = 0; i < out_.size(); ++i)
      if (!contains(rule_.unbatched_out, i)) out_[i].store(args.out[i]);
    if (rule_.sums > 0) return;  // finish() stores the operands that a reduction changes
    for (const size_t i : mutated_) {
      if (args.window.end)
        in_[i].store(args.in[i], places(args, i));
      else
        in_[i].store(args.in[i]);
    }
  }

  void finish(const FinishArgs& args) override {
    if (args.thread != 0 || !rule_.finish) return;
    std::ranges::fill(totals_, 0.0);
    for (const void* state : args.states)
      for (size_t i = 0; i < totals_.size(); ++i)
        totals_[i] += static_cast<const double*>(state)[i];
    for (const size_t i : rule_.unbatched_in) in_[i].load(args.in[i]);
    rule_.finish({in_, out_, totals_, 0, args.step ? *args.step : kNoStep});
    for (const size_t i : rule_.unbatched_out) out_[i].store(args.out[i]);
    for (const size_t i : mutated_) in_[i].store(args.in[i]);
  }

 private:
  /// Returns the places of input i that the call's window leaves: for an update's operands the
  /// places at which the weight lies inside. Elements outside then read as zeros, and the rule's
  /// results for them are dropped: a zero adds nothing to a sum.
  PlainTensor::Places places(const KernelArgs& args, size_t i) const {
    const int64_t all = in_[i].storage_elements();
    if (weight_of_.empty() || weight_of_[i] < 0) return {0, all};
    const auto [first, last] = args.window.inside(args.in[static_cast<size_t>(weight_of_[i])], all);
    return {first, last};
  }

  static constexpr StepInfo kNoStep{};
  Rule rule_;
  std::vector<PlainTensor> in_, out_;
  std::vector<size_t> mutated_;
  std::vector<int>
      weight_of_;  // updates only: by input, the parameter that it belongs to; -1 = none
  std::vector<double> totals_;
};

}  // namespace

Rule RuleTable::find(const KernelRequest& request) const {
  const graph::Op& op = *request.op;
  const auto rule = rules_.find(typeid(op));
  return rule == rules_.end() ? Rule{} : rule->second(request);
}

const RuleTable& reference_rules() {
  static const RuleTable all = [] {
    RuleTable table;
    register_all(table);
    return table;
  }();
  return all;
}

std::vector<KernelCandidate> ReferenceBackend::candidates(const KernelRequest& request) const {
  KernelRequest wanted = request;
  for (size_t i = 0; i < wanted.in.size(); ++i)
    if (i < wanted.in_free.size() && wanted.in_free[i])
      wanted.in[i] = {DType::f32, request.in[i].shape, {}};
  for (size_t i = 0; i < wanted.out.size(); ++i)
    if (i < wanted.out_free.size() && wanted.out_free[i]) wanted.out[i].layout = Layout::plain();
  KernelCandidate candidate{.name = "reference",
                            .refusal = {},
                            .in = wanted.in,
                            .out = wanted.out,
                            .make = {},
                            .speed = KernelSpeed::oracle};
  if (Rule rule = reference_rules().find(wanted); rule.run)
    candidate.make = [rule, wanted] { return std::make_unique<ReferenceKernel>(rule, wanted); };
  else
    candidate.refusal = fmt::format("no reference kernel for op '{}'", request.op->name());
  return {candidate};
}

std::vector<Layout> ReferenceBackend::activation_layouts(const Shape& shape, DType) const {
  if (shape.rank() < 3) return {Layout::plain()};
  return {Layout::plain(), Layout::channels_last(shape.rank()), Layout::blocked_channels(16)};
}

}  // namespace tutti::backend
