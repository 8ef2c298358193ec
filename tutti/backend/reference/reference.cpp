#include "tutti/backend/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/backend/reference/rules.h"

namespace tutti {
namespace {

bool contains(const std::vector<size_t>& list, size_t i) { return std::ranges::find(list, i) != list.end(); }

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(Rule rule, const KernelRequest& request) : rule_(std::move(rule)), totals_(rule_.sums) {
    for (const TensorDesc& desc : request.in) in_.emplace_back(desc);
    for (const TensorDesc& desc : request.out) out_.emplace_back(desc);
    for (size_t i = 0; i < request.in.size(); ++i)
      if (request.op->mutates(static_cast<int>(i))) mutated_.push_back(i);
  }

  size_t state_bytes() const override { return rule_.sums * sizeof(double); }

  void run(const KernelArgs& args) override {
    if (args.part != 0) return;
    auto* const sums = static_cast<double*>(args.state);
    if (rule_.sums > 0 && args.first) std::fill_n(sums, rule_.sums, 0.0);
    for (size_t i = 0; i < in_.size(); ++i) in_[i].load(args.in[i]);
    rule_.run({in_, out_, {sums, rule_.sums}, args.first_sample, args.step ? *args.step : kNoStep});
    for (size_t i = 0; i < out_.size(); ++i)
      if (!contains(rule_.unbatched_out, i)) out_[i].store(args.out[i]);
    if (rule_.sums > 0) return;  // what reductions change, finish changes
    for (const size_t i : mutated_) in_[i].store(args.in[i]);
  }

  void finish(const FinishArgs& args) override {
    if (args.part != 0) return;
    std::ranges::fill(totals_, 0.0);
    for (const void* state : args.states)
      for (size_t i = 0; i < totals_.size(); ++i) totals_[i] += static_cast<const double*>(state)[i];
    for (const size_t i : rule_.unbatched_in) in_[i].load(args.in[i]);
    rule_.finish({in_, out_, totals_, 0, args.step ? *args.step : kNoStep});
    for (const size_t i : rule_.unbatched_out) out_[i].store(args.out[i]);
    for (const size_t i : mutated_) in_[i].store(args.in[i]);
  }

 private:
  static constexpr StepInfo kNoStep{};
  Rule rule_;
  std::vector<PlainTensor> in_, out_;
  std::vector<size_t> mutated_;
  std::vector<double> totals_;
};

}  // namespace

std::vector<KernelCandidate> ReferenceBackend::candidates(const KernelRequest& request) const {
  KernelRequest wanted = request;
  for (size_t i = 0; i < wanted.in.size(); ++i)
    if (i < wanted.in_free.size() && wanted.in_free[i]) wanted.in[i] = {DType::f32, request.in[i].shape, {}};
  for (size_t i = 0; i < wanted.out.size(); ++i)
    if (i < wanted.out_free.size() && wanted.out_free[i]) wanted.out[i].layout = Layout::plain();
  KernelCandidate candidate{.name = "reference", .refusal = {}, .in = wanted.in, .out = wanted.out, .make = {}};
  for (const auto family : {conv_rule, batch_norm_rule, pointwise_rule, dense_rule, pool_rule, shape_rule, loss_rule, update_rule})
    if (Rule rule = family(wanted); rule.run) {
      candidate.make = [rule, wanted] { return std::make_unique<ReferenceKernel>(rule, wanted); };
      return {candidate};
    }
  candidate.refusal = fmt::format("no reference kernel for op '{}'", request.op->name());
  return {candidate};
}

std::vector<Layout> ReferenceBackend::activation_layouts(const Shape& shape, DType) const {
  if (shape.rank() < 3) return {Layout::plain()};
  return {Layout::plain(), Layout::channels_last(shape.rank()), Layout::blocked_channels(16)};
}

}  // namespace tutti
