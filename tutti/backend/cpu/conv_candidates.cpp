#include "tutti/backend/cpu/conv_candidates.h"

#include <memory>
#include <utility>

#include "tutti/backend/cpu/conv.h"
#include "tutti/backend/cpu/conv_mirrored.h"
#include "tutti/backend/cpu/conv_turned.h"
#include "tutti/backend/cpu/conv_widened.h"
#include "tutti/backend/cpu/matrix_conv.h"
#include "tutti/ops/conv.h"

namespace tutti {

namespace {

/// A gradient of weights that the team should share, made by one of its threads: of layouts that no
/// kernel shares.
class LoneWeightsKernel final : public Kernel {
 public:
  explicit LoneWeightsKernel(std::unique_ptr<Kernel> inner)
      : inner_(std::move(inner)), workspace_(workspace_part(inner_->workspace_bytes())) {}
  size_t workspace_bytes() const override { return workspace_ + inner_->state_bytes(); }
  void run(const KernelArgs& args) override {
    if (args.part != 0) return;
    KernelArgs inner = args;
    inner.parts = 1;
    inner.state = inner_->state_output() == 0
                      ? args.out[0]
                      : static_cast<std::byte*>(args.workspace) + workspace_;
    inner_->run(inner);
    inner_->finish(
        {.in = args.in, .out = args.out, .states = {&inner.state, 1}, .step = args.step});
  }

 private:
  std::unique_ptr<Kernel> inner_;
  size_t workspace_;
};

/// Kernels for gradients that the team shares.
void append_shared_weights(const KernelRequest& request, const ConvBackwardWeights& op,
                           std::vector<KernelCandidate>& candidates) {
  append_matrix_conv_candidate(request, candidates);
  if (candidates.back().refusal.empty()) return;
  const ConvBackwardWeights of_samples(op.conv(), op.w_shape());
  KernelRequest alone = request;
  alone.op = &of_samples;
  std::vector<KernelCandidate> inner;
  append_every_conv_candidate(alone, inner);
  for (KernelCandidate& c : inner) {
    c.name += ", alone";
    if (c.make)
      c.make = [make = std::move(c.make)]() -> std::unique_ptr<Kernel> {
        return std::make_unique<LoneWeightsKernel>(make());
      };
    candidates.push_back(std::move(c));
  }
}

}  // namespace

bool append_every_conv_candidate(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates) {
  if (const auto* weights = dynamic_cast<const ConvBackwardWeights*>(request.op);
      weights && weights->whole()) {
    append_shared_weights(request, *weights, candidates);
    return true;
  }
  if (!append_conv_candidates(request, candidates)) return false;
  append_mirrored_conv_candidates(request, candidates);
  append_widened_conv_candidates(request, candidates);
  append_turned_conv_candidates(request, candidates);
  return true;
}

}  // namespace tutti
