#include "tutti/backend/cpu/conv/conv.h"

namespace tutti::backend {

ConvRequest::ConvRequest(const KernelRequest& r, const ops::Conv& op)
    : request(r), makes(Makes::results), a(op.conv()), x(r.in[0]), y(r.out[0]), w(r.in[1]),
      w_free(r.in_free[1]), bias(op.bias()), activation(op.activation()) {}

ConvRequest::ConvRequest(const KernelRequest& r, const ops::ConvBackwardData& op)
    : request(r), makes(Makes::data), a(op.conv()), x(r.out[0]), y(r.in[0]), w(r.in[1]),
      w_free(r.in_free[1]) {}

ConvRequest::ConvRequest(const KernelRequest& r, const ops::ConvBackwardWeights& op)
    : request(r), makes(Makes::weights), a(op.conv()), x(r.in[0]), y(r.in[1]), w(r.out[0]),
      w_free(r.out_free[0]), whole(op.whole()) {}

void ConvRequest::want_weights(KernelCandidate& c, const Layout& layout) const {
  const TensorDesc wanted{DType::f32, w.shape, layout};
  TensorDesc& now = weights_of(c);
  if (c.refusal.empty() && !w_free && now != wanted)
    c.refusal = "weights must be " + wanted.to_string();
  if (c.refusal.empty()) now = wanted;
}

}  // namespace tutti::backend
