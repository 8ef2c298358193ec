// The loss over a vocabulary, its gradient, and which labels are the likeliest. Sequences are
// channels last: the logits of a position are contiguous, and a tile's logits are read where they
// were made, in cache or near it.

#include <algorithm>
#include <cmath>
#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/backend/cpu/sequence/token_logits.h"
#include "tutti/ops/sequence/token_loss.h"

namespace tutti::backend {
namespace {

using simd::Floats;

class CountTokensKernel final : public Kernel {
 public:
  CountTokensKernel(const KernelRequest& r, const ops::CountTokens& op)
      : count_(r.in[0].elements()), vocabulary_(op.vocabulary()) {}
  void run(const KernelArgs& args) override {
    if (args.thread != 0) return;  // a few thousand numbers
    const auto* const labels = static_cast<const int32_t*>(args.in[0]);
    const int64_t found = std::count_if(labels, labels + count_,
                                        [&](int32_t y) { return y >= 0 && y < vocabulary_; });
    *static_cast<float*>(args.out[0]) = static_cast<float>(std::max<int64_t>(found, 1));
  }

 private:
  int64_t count_, vocabulary_;
};

template <class T>
class TokenLossKernel final : public Kernel {
 public:
  TokenLossKernel(const KernelRequest& r, const ops::TokenLoss& op)
      : a_(op.loss()), vocabulary_(r.in[0].shape[1]), positions_(r.in[1].elements()) {}
  size_t state_bytes() const override { return sizeof(double); }

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    auto* const surprise = static_cast<float*>(args.out[1]);
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    const double s = static_cast<double>(a_.label_smoothing);
    for (int64_t i = 0; i < positions_; ++i, x += vocabulary_) {
      surprise[i] = 0;
      if (labels[i] < 0 || labels[i] >= vocabulary_) continue;
      const LogitRow<T> row{x, vocabulary_};
      const float log_sum = row.log_sum();
      surprise[i] = log_sum - static_cast<float>(x[labels[i]]);
      *sum += (1 - s) * static_cast<double>(surprise[i]);
      if (s > 0)
        *sum += s * static_cast<double>(log_sum - row.sum([](Floats v) { return v; }) /
                                                      static_cast<float>(vocabulary_));
    }
  }
  void finish(const FinishArgs& args) override {
    if (args.thread != 0) return;
    double all = 0;
    for (const void* state : args.states) all += *static_cast<const double*>(state);
    *static_cast<float*>(args.out[0]) =
        static_cast<float>(static_cast<double>(a_.scale) * all /
                           static_cast<double>(*static_cast<const float*>(args.in[2])));
  }

 private:
  ops::TokenLossAttributes a_;
  int64_t vocabulary_, positions_;
};

template <class T>
class TokenLossGradKernel final : public Kernel {
 public:
  TokenLossGradKernel(const KernelRequest& r, const ops::TokenLossGrad& op)
      : a_(op.loss()), vocabulary_(r.in[0].shape[1]), positions_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    const auto* const surprise = static_cast<const float*>(args.in[3]);
    auto* dx = static_cast<T*>(args.out[0]);
    const auto gradient =
        LogitGradient::of(a_, *static_cast<const float*>(args.in[2]), vocabulary_);
    for (int64_t i = 0; i < positions_; ++i, x += vocabulary_, dx += vocabulary_) {
      const int32_t y = labels[i];
      if (y < 0 || y >= vocabulary_) {
        std::fill_n(dx, vocabulary_, T(0.f));
        continue;
      }
      gradient.write(LogitRow<T>{x, vocabulary_}, surprise[i] + static_cast<float>(x[y]), y, dx);
    }
  }

 private:
  ops::TokenLossAttributes a_;
  int64_t vocabulary_, positions_;
};

template <class T>
class TokenHitsKernel final : public Kernel {
 public:
  TokenHitsKernel(const KernelRequest& r, const ops::TokenHits&)
      : vocabulary_(r.in[0].shape[1]), positions_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const labels = static_cast<const int32_t*>(args.in[1]);
    auto* const hits = static_cast<float*>(args.out[0]);
    for (int64_t i = 0; i < positions_; ++i, x += vocabulary_)
      hits[i] = labels[i] >= 0 && labels[i] < vocabulary_ && is_first_of_largest(x, labels[i]);
  }

 private:
  bool is_first_of_largest(const T* x, int64_t y) const {
    const auto of_label = static_cast<float>(x[y]);
    const auto before = [&](T v) { return static_cast<float>(v) < of_label; };
    const auto behind = [&](T v) { return static_cast<float>(v) <= of_label; };
    return std::all_of(x, x + y, before) && std::all_of(x + y, x + vocabulary_, behind);
  }

  int64_t vocabulary_, positions_;
};

template <template <class> class K, class O>
KernelCandidate token_loss_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:token_loss");
  const TensorDesc& x = r.in[0];
  if (x.layout != Layout::channels_last(3)) c.refusal = "only channels last";
  if (r.out[0].shape == x.shape && r.out[0].layout != x.layout)
    c.refusal = "the gradient lies otherwise";
  if (!r.in[1].layout.is_plain()) c.refusal = "only plain labels";
  choose_kernel<K>(c, x.dtype, "loss", r, op);
  return c;
}

}  // namespace

void register_token_loss_kernels(KernelTable& table) {
  table.add<ops::TokenLoss>(channels_last(token_loss_kernel<TokenLossKernel, ops::TokenLoss>));
  table.add<ops::TokenLossGrad>(
      channels_last(token_loss_kernel<TokenLossGradKernel, ops::TokenLossGrad>));
  table.add<ops::TokenHits>(channels_last(token_loss_kernel<TokenHitsKernel, ops::TokenHits>));
  table.add<ops::CountTokens>([](const KernelRequest& r, const ops::CountTokens& op) {
    KernelCandidate c = candidate_for(r, "cpu:count_tokens");
    c.make = [r, op] { return std::make_unique<CountTokensKernel>(r, op); };
    return c;
  });
}

}  // namespace tutti::backend
