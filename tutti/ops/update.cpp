#include "tutti/ops/update.h"

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::vector<ValueType> Update::infer(Types in) const {
  const auto first = static_cast<size_t>(leading()), each = static_cast<size_t>(arity());
  require(in.size() > first && (in.size() - first) % each == 0,
          "{}: {} inputs given, lr and gradient_scale{} and then {} for each parameter expected",
          name(), in.size(), sums_ == Sums::reads ? ", block sums" : "", each);
  for (size_t i = 0; i < kScalars; ++i)
    require(in[i].desc.shape.rank() == 0 && in[i].desc.dtype == DType::f32,
            "{}: input {} is {}, an f32 scalar is needed", name(), i, in[i].desc);
  int64_t blocks = 0;
  for (size_t i = first; i < in.size(); ++i) {
    const ValueType& w = in[i - (i - first) % each];
    require(in[i].desc.shape == w.desc.shape && in[i].desc.dtype == DType::f32 && !in[i].batched,
            "{}: input {} is {}, the parameter is {}", name(), i, in[i].desc, w.desc);
    if (&in[i] == &w) blocks += sum_blocks(w.desc.layout.storage_elements(w.desc.shape));
  }
  const ValueType sums{{DType::f32, Shape{blocks, 2}, {}}, false};
  if (sums_ == Sums::reads)
    require(in[kScalars].desc == sums.desc && !in[kScalars].batched,
            "{}: the block sums are {}, the parameters have {}", name(), in[kScalars].desc,
            sums.desc);
  return sums_ == Sums::writes ? std::vector{sums} : std::vector<ValueType>{};
}

namespace {

/// The texts leave out defaults, which most updates have.
std::string clip_text(double clip) { return clip > 0 ? fmt::format(" clip {}", clip) : ""; }
std::string rate_text(double rate) { return rate == 1 ? "" : fmt::format(" rate {}", rate); }

}  // namespace

std::string SgdAttributes::to_string() const {
  return fmt::format("momentum {} weight_decay {}{}{}{}", momentum, weight_decay,
                     nesterov ? " nesterov" : "", rate_text(rate), clip_text(clip));
}

std::string AdamAttributes::to_string() const {
  return fmt::format("beta {},{} eps {} weight_decay {}{}{}{}", beta1, beta2, eps, weight_decay,
                     decoupled ? " decoupled" : "", rate_text(rate), clip_text(clip));
}

std::string RmspropAttributes::to_string() const {
  return fmt::format("rho {} eps {} weight_decay {}{}{}", rho, eps, weight_decay, rate_text(rate),
                     clip_text(clip));
}

std::string LarsAttributes::to_string() const {
  return fmt::format("momentum {} weight_decay {} trust {} eps {}{}", momentum, weight_decay, trust,
                     eps, rate_text(rate));
}

std::string LambAttributes::to_string() const {
  return fmt::format("beta {},{} eps {} weight_decay {}{}", beta1, beta2, eps, weight_decay,
                     rate_text(rate));
}

std::string WeightAverageAttributes::to_string() const {
  return fmt::format("decay {} from {}", decay, from);
}

}  // namespace tutti::ops
