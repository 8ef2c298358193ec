// Convolution kernels for CPUs: oneDNN's implementations of Conv, ConvBackwardData and
// ConvBackwardWeights. Activations are f32 or bf16, all the same, in the layouts of the request;
// weights have the same type and the layout that the kernel names; bias and dw are f32.

#include <algorithm>
#include <memory>
#include <string>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/conv/depthwise_conv.h"
#include "tutti/backend/cpu/onednn/onednn.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

using onednn::ConvImplementation;
using onednn::ConvKind;
using onednn::ConvProblem;
using onednn::Primitive;

// Shared because std::function, which makes one kernel per thread from it, must be copyable.
using SharedDesc = std::shared_ptr<const ConvImplementation>;

class ConvForwardKernel final : public Kernel {
 public:
  ConvForwardKernel(const SharedDesc& d, bool bias) : bias_(bias), primitive_(make(d, bias)) {}
  size_t workspace_bytes() const override { return primitive_.scratchpad_bytes(); }
  void run(const KernelArgs& args) override {
    if (bias_)
      primitive_.run({args.in[0], args.in[1], args.in[2], args.out[0]}, args.workspace);
    else
      primitive_.run({args.in[0], args.in[1], args.out[0]}, args.workspace);
  }

 private:
  static Primitive make(const SharedDesc& d, bool bias) {
    const Primitive::Operand x{DNNL_ARG_SRC, dnnl_query_src_md},
        w{DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0}, b{DNNL_ARG_BIAS, dnnl_query_weights_md, 1},
        y{DNNL_ARG_DST, dnnl_query_dst_md};
    return bias ? Primitive(d->desc.get(), {x, w, b, y}) : Primitive(d->desc.get(), {x, w, y});
  }

  bool bias_;
  Primitive primitive_;
};

class ConvBackwardDataKernel final : public Kernel {
 public:
  explicit ConvBackwardDataKernel(const SharedDesc& d)
      : primitive_(d->desc.get(), {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                   {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                                   {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md}}) {}
  size_t workspace_bytes() const override { return primitive_.scratchpad_bytes(); }
  void run(const KernelArgs& args) override {
    primitive_.run({args.in[0], args.in[1], args.out[0]}, args.workspace);
  }

 private:
  Primitive primitive_;
};

// oneDNN can only overwrite dw, so the first tile writes into the state and each later one into the
// workspace, from which it is added while it is still in cache.
class ConvBackwardWeightsKernel final : public Kernel {
 public:
  explicit ConvBackwardWeightsKernel(const SharedDesc& d)
      : primitive_(d->desc.get(), {{DNNL_ARG_SRC, dnnl_query_src_md},
                                   {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                                   {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md}}),
        elements_(static_cast<int64_t>(d->w.bytes() / sizeof(float))),
        scratchpad_(workspace_part(primitive_.scratchpad_bytes())) {}
  size_t workspace_bytes() const override { return scratchpad_ + state_bytes(); }
  size_t state_bytes() const override { return static_cast<size_t>(elements_) * sizeof(float); }
  int state_output() const override { return 0; }
  void run(const KernelArgs& args) override {
    if (args.first) {
      primitive_.run({args.in[0], args.in[1], args.state}, args.workspace);
      return;
    }
    auto* const tile =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + scratchpad_);
    primitive_.run({args.in[0], args.in[1], tile}, args.workspace);
    simd::add(static_cast<float*>(args.state), tile, elements_);
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), elements_);
  }

 private:
  Primitive primitive_;
  int64_t elements_;
  size_t scratchpad_;
};

ConvProblem problem_of_onednn(const ConvRequest& r) {
  ConvProblem p{.kind = r.makes_weights() ? ConvKind::backward_weights
                        : r.makes_data()  ? ConvKind::backward_data
                                          : ConvKind::forward,
                .attributes = r.a,
                .x = r.x,
                .w = r.w,
                .y = r.y,
                .any_w = r.w_free,
                .bias = r.bias,
                .activation = r.activation};
  if (p.any_w && !r.makes_weights()) p.w.dtype = r.from().dtype;
  if (p.any_w) p.w.layout = Layout::plain();
  return p;
}

std::function<std::unique_ptr<Kernel>()> maker(const ConvProblem& p, SharedDesc d) {
  switch (p.kind) {
    case ConvKind::forward:
      return [d = std::move(d), bias = p.bias] {
        return std::make_unique<ConvForwardKernel>(d, bias);
      };
    case ConvKind::backward_data:
      return [d = std::move(d)] { return std::make_unique<ConvBackwardDataKernel>(d); };
    case ConvKind::backward_weights:
      return [d = std::move(d)] { return std::make_unique<ConvBackwardWeightsKernel>(d); };
  }
  return {};
}

std::string refusal_of(const ConvProblem& p) {
  if (p.x.dtype != p.y.dtype) return "x and y have different types";
  if (p.x.dtype != DType::f32 && p.x.dtype != DType::bf16)
    return fmt::format("no convolution of {}", name_of(p.x.dtype));
  const DType w = p.kind == ConvKind::backward_weights ? DType::f32 : p.x.dtype;
  if (p.w.dtype != w)
    return fmt::format("weights are {}, this convolution needs {}", name_of(p.w.dtype), name_of(w));
  return {};
}

/// True for oneDNN 2.6, which gathers the pixels of a strided 1x1 convolution of a channels-last
/// tensor in whole vectors of channels: if fewer are left it writes beyond its scratchpad.
bool overruns_scratchpad(const ConvProblem& p, const ConvImplementation& implementation) {
  const int64_t lanes = implementation.name.find("avx512") != std::string::npos ? 16 : 8;
  const auto& stride = p.attributes.stride;
  return implementation.name.find("1x1") != std::string::npos && !p.x.layout.is_plain() &&
         p.x.shape[1] % lanes != 0 &&
         std::ranges::any_of(stride, [](int64_t step) { return step > 1; });
}

/// True for oneDNN 2.6's bf16 convolutions of one tap, which add up pairs of channels. With an odd
/// number, such as 401, results were wrong.
bool miscounts_pairs(const ConvProblem& p, const ConvImplementation& implementation) {
  const TensorDesc& from = p.kind == ConvKind::forward ? p.x : p.y;
  return p.kind != ConvKind::backward_weights && from.shape[1] % 2 != 0 &&
         implementation.name.find("bf16_1x1") != std::string::npos;
}

KernelCandidates onednn_conv(const ConvRequest& r) {
  const ConvProblem p = problem_of_onednn(r);
  KernelCandidate base{"onednn", refusal_of(p), r.request.in, r.request.out, {}};
  std::vector<ConvImplementation> found;
  if (base.refusal.empty()) {
    try {
      found = onednn::conv_implementations(p);
      if (found.empty())
        base.refusal = fmt::format("oneDNN has no implementation for x {}, w {}, y {}",
                                   p.x.to_string(), p.w.to_string(), p.y.to_string());
    } catch (
        const DeviceError& e) {  // a refusal, not a failure: another backend may have the kernel
      base.refusal = e.what();
    }
  }
  if (!base.refusal.empty()) return {std::move(base)};
  // Slow ones need not be measured where a kernel of this folder takes the request.
  const KernelCandidates depthwise = depthwise_conv(r);
  const bool own = !depthwise.empty() && depthwise[0].refusal.empty();
  KernelCandidates candidates;
  std::vector<std::string> families;  // accepted so far: "jit", "jit_1x1", "brgconv"
  for (ConvImplementation& implementation : found) {
    KernelCandidate c = base;
    c.name = "onednn:" + implementation.name;
    if (implementation.name.find("ref") == 0) c.speed = KernelSpeed::slow;
    const auto shared = std::make_shared<const ConvImplementation>(std::move(implementation));
    r.weights_of(c) = shared->w;
    const std::string family = shared->name.substr(0, shared->name.find(':'));
    if (!shared->usable)
      c.refusal = "its weight layout has no form in Layout";
    else if (overruns_scratchpad(p, *shared))
      c.refusal = "it writes beyond its scratchpad for these channels";
    else if (miscounts_pairs(p, *shared))
      c.refusal = "it adds up pairs of an odd number of channels";
    else if ((own || !families.empty()) && shared->is_slow())
      c.refusal = "a direct implementation exists";
    else if (std::ranges::find(families, family) != families.end())
      c.refusal = "the same for a narrower instruction set";
    else
      c.make = maker(p, shared);
    if (c.refusal.empty()) families.push_back(family);
    candidates.push_back(std::move(c));
  }
  return candidates;
}

}  // namespace

void register_onednn_conv(KernelTable& table) { add_conv(table, onednn_conv, ConvPlace::onednn); }

}  // namespace tutti::backend
