// Vectors of tokens and of positions. Sequences are channels last: a position's channels are
// contiguous.

#include <algorithm>
#include <memory>
#include <vector>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/ops/sequence/lookup.h"

namespace tutti::backend {
namespace {

using attention::for_each_lanes;

/// The places of the rows of a matrix [V, C] or [V, C, 1] of any layout.
struct MatrixPlaces {
  std::vector<int64_t> row, channel;
  int64_t first;  ///< the token of the first row
  MatrixPlaces(const TensorDesc& d, int64_t first_token)
      : row(d.layout.terms(d.shape, 0)), channel(d.layout.terms(d.shape, 1)), first(first_token) {}
  int64_t rows() const { return std::ssize(row); }
  bool has(int32_t token) const { return token >= first && token - first < rows(); }
  /// Calls f(channel, its place) for a row.
  template <class F>
  void for_row(int32_t token, F f) const {
    const int64_t at = row[static_cast<size_t>(token - first)];
    for (size_t c = 0; c < channel.size(); ++c) f(c, at + channel[c]);
  }
};

template <class T>
class LookupKernel final : public Kernel {
 public:
  LookupKernel(const KernelRequest& r, const ops::Lookup& op)
      : w_(r.in[0], op.first()), channels_(r.in[0].shape[1]), tokens_(r.in[1].elements()) {}

  void run(const KernelArgs& args) override {
    const auto* const w = static_cast<const float*>(args.in[0]);
    const auto* const tokens = static_cast<const int32_t*>(args.in[1]);
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t i = 0; i < tokens_; ++i, y += channels_)
      if (w_.has(tokens[i]))
        w_.for_row(tokens[i], [&](size_t c, int64_t at) { y[c] = static_cast<T>(w[at]); });
      else
        std::fill_n(y, channels_, T(0.f));
  }

 private:
  MatrixPlaces w_;
  int64_t channels_, tokens_;
};

/// Returns how many rows share a contiguous range of storage: all if no range has whole rows.
int64_t rows_together(const TensorDesc& d) {
  if (d.layout.order[0] != 0) return d.shape[0];
  int64_t rows = 1;
  for (int b = 0; b < d.layout.num_blocks; ++b)
    if (const Layout::Block& each = d.layout.blocks[static_cast<size_t>(b)]; each.dim == 0)
      rows *= each.size;
  return rows;
}

/// Each part adds to the rows in its own contiguous range of storage.
template <class T>
class LookupGradKernel final : public Kernel {
 public:
  LookupGradKernel(const KernelRequest& r, const ops::LookupGrad& op)
      : dw_(r.out[0], op.first()), adds_(op.adds()), channels_(op.w_shape()[1]),
        tokens_(r.in[1].elements()), block_(rows_together(r.out[0])),
        storage_(r.out[0].layout.storage_elements(r.out[0].shape)),
        blocks_((dw_.rows() + block_ - 1) / block_) {}

  void run(const KernelArgs& args) override {
    const auto* dy = static_cast<const T*>(args.in[0]);
    const auto* const tokens = static_cast<const int32_t*>(args.in[1]);
    auto* const dw = static_cast<float*>(args.out[0]);
    const auto [first, last] = share(blocks_, args.thread, args.threads);
    const int64_t of_block = storage_ / blocks_;
    if (!adds_)
      std::fill(dw + first * of_block, dw + last * of_block, 0.f);
    else if (args.in[2] != args.out[0])
      std::copy(static_cast<const float*>(args.in[2]) + first * of_block,
                static_cast<const float*>(args.in[2]) + last * of_block, dw + first * of_block);
    for (int64_t i = 0; i < tokens_; ++i, dy += channels_)
      if (const int64_t block = dw_.has(tokens[i]) ? (tokens[i] - dw_.first) / block_ : -1;
          block >= first && block < last)
        dw_.for_row(tokens[i], [&](size_t c, int64_t at) { dw[at] += static_cast<float>(dy[c]); });
  }

 private:
  MatrixPlaces dw_;
  bool adds_;
  int64_t channels_, tokens_, block_, storage_, blocks_;
};

template <class T>
class AddPositionsKernel final : public Kernel {
 public:
  AddPositionsKernel(const KernelRequest& r, const ops::AddPositions& op)
      : samples_(r.in[0].shape[0]), size_(sample_size(r.in[0])),
        first_(op.first() * r.in[0].shape[1]) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const p = static_cast<const float*>(args.in[1]) + first_;
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, x += size_, y += size_)
      for_each_lanes(size_, [&](int64_t i, auto lanes) {
        simd::store(y + i, simd::load(x + i, lanes) + simd::load(p + i, lanes), lanes);
      });
  }

 private:
  int64_t samples_, size_, first_;
};

template <class T>
class AddPositionsGradKernel final : public Kernel {
 public:
  AddPositionsGradKernel(const KernelRequest& r, const ops::AddPositionsGrad& op)
      : samples_(r.in[0].shape[0]), size_(sample_size(r.in[0])), all_(r.out[0].elements()),
        first_(op.first() * r.in[0].shape[1]) {}
  size_t state_bytes() const override { return static_cast<size_t>(all_) * sizeof(float); }
  int state_output() const override { return 0; }

  void run(const KernelArgs& args) override {
    const auto* dy = static_cast<const T*>(args.in[0]);
    auto* const sums = static_cast<float*>(args.state);
    if (args.first) std::fill_n(sums, all_, 0.f);
    for (int64_t n = 0; n < samples_; ++n, dy += size_)
      for_each_lanes(size_, [&](int64_t i, auto lanes) {
        float* const to = sums + first_ + i;
        simd::store(to, simd::load(to, lanes) + simd::load(dy + i, lanes), lanes);
      });
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), all_);
  }

 private:
  int64_t samples_, size_, all_, first_;
};

template <class T>
class PrependTokenKernel final : public Kernel {
 public:
  explicit PrependTokenKernel(const KernelRequest& r)
      : samples_(r.in[0].shape[0]), channels_(r.in[0].shape[1]), size_(sample_size(r.in[0])) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const token = static_cast<const float*>(args.in[1]);
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, x += size_) {
      y = std::transform(token, token + channels_, y, [](float v) { return static_cast<T>(v); });
      y = std::copy(x, x + size_, y);
    }
  }

 private:
  int64_t samples_, channels_, size_;
};

/// Returns the kernel of an op with this sequence.
template <template <class> class K, class... Args>
KernelCandidate token_kernel(const KernelRequest& r, const char* name, const TensorDesc& sequence,
                             const Args&... args) {
  KernelCandidate c = candidate_for(r, name);
  if (sequence.layout != Layout::channels_last(3)) c.refusal = "only channels last";
  choose_kernel<K>(c, sequence.dtype, "sequences", r, args...);
  return c;
}

KernelCandidate lookup_kernel(const KernelRequest& r, const ops::Lookup& op) {
  KernelCandidate c = token_kernel<LookupKernel>(r, "cpu:lookup", r.out[0], op);
  if (r.in[0].dtype == DType::f32) c.in[0] = r.in[0];  // a few rows, in their own layout
  return c;
}

KernelCandidate lookup_grad_kernel(const KernelRequest& r, const ops::LookupGrad& op) {
  KernelCandidate c = token_kernel<LookupGradKernel>(r, "cpu:lookup", r.in[0], op);
  if (op.adds() && r.in[2].layout != r.out[0].layout)
    c.refusal = "the layout of what it adds to is another";
  return c;
}

KernelCandidate add_positions_kernel(const KernelRequest& r, const ops::AddPositions& op) {
  KernelCandidate c = token_kernel<AddPositionsKernel>(r, "cpu:positions", r.in[0], op);
  if (r.out[0].layout != r.in[0].layout) c.refusal = "only channels last";
  return c;
}

KernelCandidate add_positions_grad_kernel(const KernelRequest& r, const ops::AddPositionsGrad& op) {
  KernelCandidate c = token_kernel<AddPositionsGradKernel>(r, "cpu:positions", r.in[0], op);
  if (!c.out[0].layout.is_plain()) c.refusal = "only plain sums";
  return c;
}

KernelCandidate prepend_token_kernel(const KernelRequest& r) {
  KernelCandidate c = token_kernel<PrependTokenKernel>(r, "cpu:tokens", r.in[0]);
  if (r.out[0].layout != r.in[0].layout) c.refusal = "only channels last";
  return c;
}

}  // namespace

void register_token_kernels(KernelTable& table) {
  table.add<ops::Lookup>(channels_last(lookup_kernel, SequenceForm{.inputs = 0}));
  table.add<ops::LookupGrad>(
      channels_last(lookup_grad_kernel, SequenceForm{.inputs = 1, .outputs = 0}));
  table.add<ops::AddPositions>(channels_last(add_positions_kernel, SequenceForm{.inputs = 1}));
  table.add<ops::AddPositionsGrad>(
      channels_last(add_positions_grad_kernel, SequenceForm{.inputs = 1, .outputs = 0}));
  table.add<ops::PrependToken>(channels_last(prepend_token_kernel, SequenceForm{.inputs = 1}));
}

}  // namespace tutti::backend
