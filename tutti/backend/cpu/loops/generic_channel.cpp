// Parts of convolutions that are a pass over channels: the gradient of a bias, and the transposed
// convolution, which is the data gradient of a convolution plus a bias.

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"
#include "tutti/ops/conv_transpose.h"

namespace tutti::backend {
namespace {

using simd::Floats;

/// Returns the view of a tensor; a matrix [N, C] is one run of positions with its channels last.
ChannelView view_of(const TensorDesc& d) {
  if (d.shape.rank() == 2) return {1, d.shape[1], d.shape[0], d.shape[1]};
  return channel_view(d);
}

template <class T>
struct SumPass {
  const T* dy;
  float* sums;
  bool first;

  struct Params {};
  struct Sums {
    Floats s;
  };
  Params params(const ChannelLanes&) const { return {}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params&, Sums& s, int64_t at, Lanes lanes) const {
    s.s += simd::load(dy + at, lanes);
  }
  static void merge(Sums& a, const Sums& b) { a.s += b.s; }
  void done(const ChannelLanes& lanes, const Params&, const Sums& s) const {
    lanes.each(s.s, [&](int64_t c, float v) { sums[c] = first ? v : sums[c] + v; });
  }
};

template <class T>
class BiasBackwardKernel final : public Kernel {
 public:
  explicit BiasBackwardKernel(const TensorDesc& dy) : view_(view_of(dy)) {}
  size_t state_bytes() const override {
    return static_cast<size_t>(view_.channels) * sizeof(float);
  }
  int state_output() const override { return 0; }
  void run(const KernelArgs& args) override {
    SumPass<T> pass{static_cast<const T*>(args.in[0]), static_cast<float*>(args.state), args.first};
    walk_tile(view_, pass);
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), view_.channels);
  }

 private:
  ChannelView view_;
};

/// Computes y += bias, in place.
template <class T>
struct BiasPass {
  T* y;
  const float* bias;

  struct Params {
    Floats bias;
  };
  struct Sums {};
  Params params(const ChannelLanes& lanes) const { return {lanes.read(bias)}; }
  template <class Lanes>
  [[gnu::always_inline]] void step(const Params& p, Sums&, int64_t at, Lanes lanes) const {
    simd::store(y + at, simd::load(y + at, lanes) + p.bias, lanes);
  }
  static void merge(Sums&, const Sums&) {}
  void done(const ChannelLanes&, const Params&, const Sums&) const {}
};

template <class T>
class BiasedKernel final : public Kernel {
 public:
  BiasedKernel(std::unique_ptr<Kernel> product, const TensorDesc& y)
      : product_(std::move(product)), view_(view_of(y)) {}
  size_t workspace_bytes() const override { return product_->workspace_bytes(); }
  void run(const KernelArgs& args) override {
    product_->run(args);
    BiasPass<T> pass{static_cast<T*>(args.out[0]), static_cast<const float*>(args.in[2])};
    walk_tile(view_, pass);
  }

 private:
  std::unique_ptr<Kernel> product_;
  ChannelView view_;
};

KernelCandidate bias_backward(const KernelRequest& r) {
  KernelCandidate c = candidate_for(r, "cpu:bias_backward");
  const TensorDesc& dy = r.in[0];
  if (!is_dense(dy) || dy.layout.channel_block(dy.shape) == 0)
    c.refusal = fmt::format("no sums over channels of {}", dy.to_string());
  choose_kernel<BiasBackwardKernel>(c, dy.dtype, "sums", dy);
  return c;
}

KernelCandidates conv_transpose_kernels(const KernelRequest& r, const ops::ConvTranspose& op) {
  const ops::ConvBackwardData data(op.conv(), r.out[0].shape);
  KernelRequest inner{&data,
                      {r.in[0], r.in[1]},
                      r.out,
                      {r.in_free.size() > 1 && r.in_free[0], r.in_free.size() > 1 && r.in_free[1]},
                      {false}};
  const TensorDesc& y = r.out[0];
  const bool no_bias = op.bias() && y.layout.channel_block(y.shape) == 0;  // e.g. padded channels
  KernelCandidates found;
  for (KernelCandidate& product : cpu_kernels().candidates(inner)) {
    KernelCandidate c = candidate_for(r, product.name);
    c.refusal = product.refusal;
    c.speed = product.speed;
    c.error = product.error;
    if (c.refusal.empty() && no_bias)
      c.refusal = fmt::format("no bias can be added over channels of {}", y.to_string());
    c.in[0] = product.in[0];
    c.in[1] = product.in[1];
    c.make = product.make;
    if (op.bias() && c.refusal.empty())
      with_float_type(r.out[0].dtype, [&](auto type) {
        c.make = [make = product.make, y = r.out[0]] {
          return std::make_unique<BiasedKernel<decltype(type)>>(make(), y);
        };
      });
    found.push_back(std::move(c));
  }
  return found;
}

}  // namespace

void register_channel_kernels(KernelTable& table) {
  table.add<ops::BiasBackward>(bias_backward);
  table.add<ops::ConvTranspose>(conv_transpose_kernels);
}

}  // namespace tutti::backend
