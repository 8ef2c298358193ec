#include "tutti/backend/cpu/conv/conv.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "tutti/backend/cpu/conv/depthwise_conv.h"
#include "tutti/backend/cpu/conv/direct_conv.h"
#include "tutti/backend/cpu/conv/matrix_conv.h"
#include "tutti/backend/cpu/conv/narrow_conv.h"
#include "tutti/backend/cpu/conv/winograd_conv.h"
#include "tutti/backend/cpu/onednn/onednn.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"

namespace tutti {
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

struct Match {
  ConvProblem problem;
  size_t free_input = 0;  ///< index of w among the inputs
};

std::optional<Match> match(const KernelRequest& r) {
  Match m;
  ConvProblem& p = m.problem;
  if (const auto* conv = dynamic_cast<const Conv*>(r.op)) {
    p = {ConvKind::forward, conv->conv(), r.in[0],      r.in[1],
         r.out[0],          r.in_free[1], conv->bias(), conv->activation()};
    if (p.any_w) p.w.dtype = p.x.dtype;
    m.free_input = 1;
  } else if (const auto* data = dynamic_cast<const ConvBackwardData*>(r.op)) {
    p = {
        ConvKind::backward_data, data->conv(), r.out[0], r.in[1], r.in[0], r.in_free[1], false, {}};
    if (p.any_w) p.w.dtype = p.y.dtype;
    m.free_input = 1;
  } else if (const auto* weights = dynamic_cast<const ConvBackwardWeights*>(r.op)) {
    p = {ConvKind::backward_weights,
         weights->conv(),
         r.in[0],
         r.out[0],
         r.in[1],
         r.out_free[0],
         false,
         {}};
  } else {
    return std::nullopt;
  }
  if (p.any_w) p.w.layout = Layout::plain();
  return m;
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

/// `own`: a kernel of this folder takes the request, so that slow ones need not be measured.
void append_onednn_candidates(const KernelRequest& request, const Match& m, bool own,
                              std::vector<KernelCandidate>& candidates) {
  const ConvProblem& p = m.problem;
  KernelCandidate base{"onednn", refusal_of(p), request.in, request.out, {}};
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
  if (!base.refusal.empty()) {
    candidates.push_back(std::move(base));
    return;
  }
  std::vector<std::string> families;  // accepted so far: "jit", "jit_1x1", "brgconv"
  for (ConvImplementation& implementation : found) {
    KernelCandidate c = base;
    c.name = "onednn:" + implementation.name;
    if (implementation.name.find("ref") == 0) c.speed = KernelSpeed::slow;
    const auto shared = std::make_shared<const ConvImplementation>(std::move(implementation));
    (p.kind == ConvKind::backward_weights ? c.out[0] : c.in[m.free_input]) = shared->w;
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
}

}  // namespace

bool append_conv_candidates(const KernelRequest& request,
                            std::vector<KernelCandidate>& candidates) {
  const auto m = match(request);
  if (!m) return false;
  const bool own = append_depthwise_conv_candidate(request, candidates);
  std::vector<KernelCandidate> direct;
  const bool direct_first = append_direct_conv_candidate(request, direct);
  if (direct_first) std::ranges::move(direct, std::back_inserter(candidates));
  append_onednn_candidates(request, *m, own, candidates);
  if (!direct_first) std::ranges::move(direct, std::back_inserter(candidates));
  append_matrix_conv_candidate(request, candidates);
  append_winograd_candidate(request, candidates);
  append_narrow_conv_candidate(request, candidates);
  return true;
}

}  // namespace tutti
