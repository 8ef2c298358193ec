// Sums the ranks' parts of a layer's result. Elements have the same layout in all operands; with a
// bias channels are innermost.

#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/ops/rank_sums.h"

namespace tutti::backend {
namespace {

template <class T>
class SumOfRanksKernel final : public Kernel {
 public:
  SumOfRanksKernel(const KernelRequest& r, const ops::SumOfRanks& op)
      : ranks_(op.group().ranks), bias_(op.bias()),
        run_(op.bias() ? r.out[0].shape[1] : r.out[0].elements()),
        runs_(r.out[0].elements() / run_) {}

  void run(const KernelArgs& args) override {
    const auto of_rank = [&](int rank) { return static_cast<const T*>(args.in[rank]); };
    auto* const y = static_cast<T*>(args.out[0]);
    const auto* const bias = bias_ ? static_cast<const float*>(args.in[ranks_]) : nullptr;
    for (int64_t i = 0, at = 0; i < runs_; ++i, at += run_)
      attention::for_each_lanes(run_, [&](int64_t k, auto lanes) {
        simd::Floats sum = simd::load(of_rank(0) + at + k, lanes);
        for (int rank = 1; rank < ranks_; ++rank) sum += simd::load(of_rank(rank) + at + k, lanes);
        if (bias) sum += simd::load(bias + k, lanes);
        simd::store(y + at + k, sum, lanes);
      });
  }

 private:
  int ranks_;
  bool bias_;
  int64_t run_, runs_;
};

std::string refusal_of_rank_sum(const KernelRequest& r, const ops::SumOfRanks& op) {
  const Layout& layout = r.out[0].layout;
  for (int rank = 0; rank < op.group().ranks; ++rank)
    if (r.in[static_cast<size_t>(rank)].layout != layout) return "operands lie otherwise";
  if (op.bias() && r.out[0].shape.rank() > 2 &&
      layout != Layout::channels_last(r.out[0].shape.rank()))
    return "only channels last";
  return refusal_of_layouts(r);
}

}  // namespace

void register_rank_sum_kernel(KernelTable& table) {
  table.add<ops::SumOfRanks>(channels_last([](const KernelRequest& r, const ops::SumOfRanks& op) {
    KernelCandidate c = candidate_for(r, "cpu:rank_sums");
    c.refusal = refusal_of_rank_sum(r, op);
    choose_kernel<SumOfRanksKernel>(c, r.out[0].dtype, "sums", r, op);
    return c;
  }));
}

}  // namespace tutti::backend
