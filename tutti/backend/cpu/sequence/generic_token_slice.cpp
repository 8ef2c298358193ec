// The loss over a vocabulary that ranks share. Sequences are channels last, as in
// generic_token_loss.cpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/backend/cpu/sequence/token_logits.h"
#include "tutti/ops/sequence/token_slice.h"

namespace tutti::backend {
namespace {

constexpr int kNumbers = 3;  // per position: logarithm of the sum, the label's logit, the sum

bool is_label(int32_t y, const ops::VocabularySlice& slice) { return y >= 0 && y < slice.all; }
bool has_label(int32_t y, const ops::VocabularySlice& slice) {
  return y >= slice.first && y - slice.first < slice.count;
}

template <class T>
class TokenStatisticsKernel final : public Kernel {
 public:
  TokenStatisticsKernel(const KernelRequest& r, const ops::TokenStatistics& op)
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
  ops::VocabularySlice slice_;
  int64_t positions_;
};

class TokenLossOfRanksKernel final : public Kernel {
 public:
  TokenLossOfRanksKernel(const KernelRequest& r, const ops::TokenLossOfRanks& op)
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
    if (args.thread != 0) return;
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

  ops::TokenLossOfRanks op_;
  int64_t positions_;
};

template <class T>
class TokenLossOfRanksGradKernel final : public Kernel {
 public:
  TokenLossOfRanksGradKernel(const KernelRequest& r, const ops::TokenLossOfRanksGrad& op)
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
  ops::TokenLossAttributes a_;
  ops::VocabularySlice slice_;
  int64_t positions_;
};

template <class T>
class TokenRivalsKernel final : public Kernel {
 public:
  TokenRivalsKernel(const KernelRequest& r, const ops::TokenRivals& op)
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
  ops::VocabularySlice slice_;
  int64_t positions_;
};

class TokenHitsOfRanksKernel final : public Kernel {
 public:
  TokenHitsOfRanksKernel(const KernelRequest& r, const ops::TokenHitsOfRanks& op)
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
  ops::TokenHitsOfRanks op_;
  int64_t positions_;
};

/// Refuses sequences among some operands that are not channels last.
void check_slices(KernelCandidate& c, const std::vector<TensorDesc>& operands) {
  for (const TensorDesc& d : operands)
    if (d.shape.rank() == 3 && d.layout != Layout::channels_last(3))
      c.refusal = "only channels last";
}

template <template <class> class K, class O>
KernelCandidate slice_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:token_slice");
  check_slices(c, r.in);
  check_slices(c, r.out);
  if (!r.in[1].layout.is_plain()) c.refusal = "only plain labels";
  choose_kernel<K>(c, r.in[0].dtype, "loss", r, op);
  return c;
}

template <class>
using LossOfRanks = TokenLossOfRanksKernel;

}  // namespace

void register_token_slice_kernels(KernelTable& table) {
  table.add<ops::TokenStatistics>(
      channels_last(slice_kernel<TokenStatisticsKernel, ops::TokenStatistics>));
  table.add<ops::TokenRivals>(channels_last(slice_kernel<TokenRivalsKernel, ops::TokenRivals>));
  table.add<ops::TokenLossOfRanks>(channels_last(slice_kernel<LossOfRanks, ops::TokenLossOfRanks>));
  table.add<ops::TokenLossOfRanksGrad>(
      channels_last(slice_kernel<TokenLossOfRanksGradKernel, ops::TokenLossOfRanksGrad>));
  table.add<ops::TokenHitsOfRanks>(
      channels_last([](const KernelRequest& r, const ops::TokenHitsOfRanks& op) {
        KernelCandidate c = candidate_for(r, "cpu:token_slice");
        check_slices(c, r.in);
        if (!r.in[0].layout.is_plain()) c.refusal = "only plain labels";
        c.make = [r, op] { return std::make_unique<TokenHitsOfRanksKernel>(r, op); };
        return c;
      }));
}

}  // namespace tutti::backend
