// The loss over a vocabulary that ranks share. Sequences are channels last, as in
// generic_token_loss.cpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tutti/backend/cpu/kernel/generic.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/token_logits.h"
#include "tutti/ops/sequence/token_slice.h"

namespace tutti {
namespace {

constexpr int kNumbers = 3;  // per position: logarithm of the sum, the label's logit, the sum

bool is_label(int32_t y, const VocabularySlice& slice) { return y >= 0 && y < slice.all; }
bool has_label(int32_t y, const VocabularySlice& slice) {
  return y >= slice.first && y - slice.first < slice.count;
}

template <class T>
class TokenStatisticsKernel final : public Kernel {
 public:
  TokenStatisticsKernel(const KernelRequest& r, const TokenStatistics& op)
      : slice_(op.slice()), positions_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t i = 0; i < positions_; ++i, x += slice_.count, y += kNumbers) {
      std::fill_n(y, kNumbers, 0.f);
      if (!is_label(labels[i], slice_)) continue;
      const LogitRow<T> row{x, slice_.count};
      y[0] = row.log_sum();
      if (has_label(labels[i], slice_)) y[1] = static_cast<float>(x[labels[i] - slice_.first]);
      y[2] = row.sum([](simd::Floats v) { return v; });
    }
  }

 private:
  VocabularySlice slice_;
  int64_t positions_;
};

class TokenLossOfRanksKernel final : public Kernel {
 public:
  TokenLossOfRanksKernel(const KernelRequest& r, const TokenLossOfRanks& op)
      : op_(op), positions_(r.in[1].elements()) {}
  size_t state_bytes() const override { return sizeof(double); }

  void run(const KernelArgs& args) override {
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    auto* const surprise = static_cast<float*>(args.out[1]);
    auto* const log_sum = static_cast<float*>(args.out[2]);
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    const double s = static_cast<double>(op_.loss().label_smoothing);
    for (int64_t i = 0; i < positions_; ++i) {
      surprise[i] = log_sum[i] = 0;
      if (!is_label(labels[i], op_.slice())) continue;
      const Position all(args, i, op_.ranks());
      log_sum[i] = static_cast<float>(all.log_sum);
      surprise[i] = static_cast<float>(all.log_sum - all.of_label);
      *sum += (1 - s) * (all.log_sum - all.of_label) +
              s * (all.log_sum - all.sum / static_cast<double>(op_.slice().all));
    }
  }
  void finish(const FinishArgs& args) override {
    if (args.part != 0) return;
    double all = 0;
    for (const void* state : args.states) all += *static_cast<const double*>(state);
    *static_cast<float*>(args.out[0]) =
        static_cast<float>(static_cast<double>(op_.loss().scale) * all /
                           static_cast<double>(*static_cast<const float*>(args.in[2])));
  }

 private:
  /// The statistics of all ranks for a position, in the order of ranks.
  struct Position {
    double log_sum = 0, of_label = 0, sum = 0;
    Position(const KernelArgs& args, int64_t i, int ranks) {
      const auto of_rank = [&](int rank) {
        return static_cast<const float*>(args.in[3 + rank]) + i * kNumbers;
      };
      float top = of_rank(0)[0];
      for (int rank = 1; rank < ranks; ++rank) top = std::max(top, of_rank(rank)[0]);
      double powers = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        powers += std::exp(static_cast<double>(of_rank(rank)[0]) - static_cast<double>(top));
        of_label += static_cast<double>(of_rank(rank)[1]);
        sum += static_cast<double>(of_rank(rank)[2]);
      }
      log_sum = static_cast<double>(top) + std::log(powers);
    }
  };

  TokenLossOfRanks op_;
  int64_t positions_;
};

template <class T>
class TokenLossOfRanksGradKernel final : public Kernel {
 public:
  TokenLossOfRanksGradKernel(const KernelRequest& r, const TokenLossOfRanksGrad& op)
      : a_(op.loss()), slice_(op.slice()), positions_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    const auto* const log_sums = static_cast<const float*>(args.in[3]);
    auto* dx = static_cast<T*>(args.out[0]);
    const auto gradient = LogitGradient::of(a_, *static_cast<const float*>(args.in[2]), slice_.all);
    for (int64_t i = 0; i < positions_; ++i, x += slice_.count, dx += slice_.count) {
      const int32_t y = labels[i];
      if (!is_label(y, slice_)) {
        std::fill_n(dx, slice_.count, T(0.f));
        continue;
      }
      gradient.write(LogitRow<T>{x, slice_.count}, log_sums[i],
                     has_label(y, slice_) ? y - slice_.first : -1, dx);
    }
  }

 private:
  TokenLossAttributes a_;
  VocabularySlice slice_;
  int64_t positions_;
};

template <class T>
class TokenRivalsKernel final : public Kernel {
 public:
  TokenRivalsKernel(const KernelRequest& r, const TokenRivals& op)
      : slice_(op.slice()), positions_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t i = 0; i < positions_; ++i, x += slice_.count, y += kNumbers) {
      std::fill_n(y, kNumbers, 0.f);
      if (!is_label(labels[i], slice_)) continue;
      const int64_t own = labels[i] - slice_.first,
                    before = std::clamp<int64_t>(own, 0, slice_.count),
                    behind = std::clamp<int64_t>(own + 1, 0, slice_.count);
      y[0] = greatest(x, before);
      if (has_label(labels[i], slice_)) y[1] = static_cast<float>(x[own]);
      y[2] = greatest(x + behind, slice_.count - behind);
    }
  }

 private:
  static float greatest(const T* x, int64_t count) {
    return count > 0 ? LogitRow<T>{x, count}.greatest() : std::numeric_limits<float>::lowest();
  }
  VocabularySlice slice_;
  int64_t positions_;
};

class TokenHitsOfRanksKernel final : public Kernel {
 public:
  TokenHitsOfRanksKernel(const KernelRequest& r, const TokenHitsOfRanks& op)
      : op_(op), positions_(r.in[0].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* const labels = static_cast<const int32_t*>(args.in[0]);
    auto* const hits = static_cast<float*>(args.out[0]);
    const auto of_rank = [&](int rank, int64_t i) {
      return static_cast<const float*>(args.in[1 + rank]) + i * kNumbers;
    };
    for (int64_t i = 0; i < positions_; ++i) {
      float own = 0;
      for (int rank = 0; rank < op_.ranks(); ++rank) own += of_rank(rank, i)[1];
      bool hit = labels[i] >= 0 && labels[i] < op_.vocabulary();
      for (int rank = 0; rank < op_.ranks(); ++rank)
        hit = hit && of_rank(rank, i)[0] < own && of_rank(rank, i)[2] <= own;
      hits[i] = hit;
    }
  }

 private:
  TokenHitsOfRanks op_;
  int64_t positions_;
};

/// Adds a kernel where everything is channels last, and labels plain; `make` by the type of the
/// logits.
void add_slice_kernel(const KernelRequest& r, std::vector<KernelCandidate>& candidates, auto make) {
  KernelCandidate c = candidate_for(r, "cpu:token_slice");
  for (const std::vector<TensorDesc>* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side)
      if (d.shape.rank() == 3 && d.layout != Layout::channels_last(3))
        c.refusal = "only channels last";
  if (!r.in[1].layout.is_plain()) c.refusal = "only plain labels";
  if (!with_float_type(r.in[0].dtype,
                       [&](auto type) { c.make = [r, make, type] { return make(r, type); }; }))
    c.refusal = fmt::format("no loss of {}", name_of(r.in[0].dtype));
  candidates.push_back(std::move(c));
}

}  // namespace

bool append_token_slice_candidates(const KernelRequest& r,
                                   std::vector<KernelCandidate>& candidates) {
  using Made = std::unique_ptr<Kernel>;
  if (const auto* const op = dynamic_cast<const TokenStatistics*>(r.op)) {
    add_slice_kernel(r, candidates, [op = *op](const KernelRequest& q, auto type) -> Made {
      return std::make_unique<TokenStatisticsKernel<decltype(type)>>(q, op);
    });
  } else if (const auto* const rivals = dynamic_cast<const TokenRivals*>(r.op)) {
    add_slice_kernel(r, candidates, [op = *rivals](const KernelRequest& q, auto type) -> Made {
      return std::make_unique<TokenRivalsKernel<decltype(type)>>(q, op);
    });
  } else if (const auto* const hits = dynamic_cast<const TokenHitsOfRanks*>(r.op)) {
    KernelCandidate c = candidate_for(r, "cpu:token_slice");
    for (const TensorDesc& d : r.in)
      if (d.shape.rank() == 3 && d.layout != Layout::channels_last(3))
        c.refusal = "only channels last";
    if (!r.in[0].layout.is_plain()) c.refusal = "only plain labels";
    c.make = [r, op = *hits] { return std::make_unique<TokenHitsOfRanksKernel>(r, op); };
    candidates.push_back(std::move(c));
  } else if (const auto* const loss = dynamic_cast<const TokenLossOfRanks*>(r.op)) {
    add_slice_kernel(r, candidates, [op = *loss](const KernelRequest& q, auto) -> Made {
      return std::make_unique<TokenLossOfRanksKernel>(q, op);
    });
  } else if (const auto* const grad = dynamic_cast<const TokenLossOfRanksGrad*>(r.op)) {
    add_slice_kernel(r, candidates, [op = *grad](const KernelRequest& q, auto type) -> Made {
      return std::make_unique<TokenLossOfRanksGradKernel<decltype(type)>>(q, op);
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace tutti
