#pragma once
// A convolution or one of its gradients as kernels see it, and the order in which they are listed.

#include <optional>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/ops/conv.h"

namespace tutti::backend {

/// The places of a convolution's kernels, and of their adapters, in a KernelTable. The first kernel
/// that accepts is taken where nothing is measured.
struct ConvPlace {
  enum : int {
    depthwise,
    likely_direct,  ///< where it is likely the fastest
    onednn,
    direct,
    shared_winograd,  ///< gradients that the team shares
    matrix,
    winograd,
    narrow,
  };
  enum : int { mirrored, widened, turned };
};

/// Refers to the request and the op.
struct ConvRequest {
  enum class Makes : uint8_t { results, data, weights };

  ConvRequest(const KernelRequest& r, const ops::Conv& op);
  ConvRequest(const KernelRequest& r, const ops::ConvBackwardData& op);
  ConvRequest(const KernelRequest& r, const ops::ConvBackwardWeights& op);

  const KernelRequest& request;
  Makes makes;
  const ops::ConvAttributes& a;
  const TensorDesc &x, &y, &w;  ///< operands of the convolution, one of which the op makes
  bool w_free;                  ///< the kernel chooses the layout of w
  bool bias = false, whole = false;
  std::optional<ops::ActivationAttributes> activation{};

  bool makes_data() const { return makes == Makes::data; }
  bool makes_weights() const { return makes == Makes::weights; }
  /// Returns the activations that are read, and those that are made or, for the gradient of
  /// weights, read besides.
  const TensorDesc& from() const { return makes_data() ? y : x; }
  const TensorDesc& to() const { return makes_data() ? x : y; }

  /// Returns the desc of w, or of its gradient, among a candidate's.
  TensorDesc& weights_of(KernelCandidate& c) const { return makes_weights() ? c.out[0] : c.in[1]; }
  /// Gives the candidate, if it has not refused, f32 weights in this layout; refuses where they are
  /// given in another one.
  void want_weights(KernelCandidate& c, const Layout& layout) const;
};

/// Registers make(ConvRequest), which returns candidates, for convolutions and their gradients, but
/// for gradients of weights that the team shares.
template <class Make>
void add_conv(KernelTable& table, Make make, int place) {
  table.add<ops::Conv, ops::ConvBackwardData, ops::ConvBackwardWeights>(
      [make](const KernelRequest& r, const auto& op) {
        const ConvRequest request(r, op);
        return request.whole ? KernelCandidates{} : make(request);
      },
      place);
}

/// Registers make(ConvRequest) for gradients of weights that the team shares.
template <class Make>
void add_shared_conv(KernelTable& table, Make make, int place) {
  table.add<ops::ConvBackwardWeights>(
      [make](const KernelRequest& r, const ops::ConvBackwardWeights& op) {
        return op.whole() ? make(ConvRequest(r, op)) : KernelCandidates{};
      },
      place);
}

}  // namespace tutti::backend
