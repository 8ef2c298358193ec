#include "tutti/ops/update.h"

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::vector<graph::ValueType> Update::infer(graph::Types in) const {
  const auto first = static_cast<size_t>(leading()), each = static_cast<size_t>(arity());
  require(in.size() > first && (in.size() - first) % each == 0,
          "{}: {} inputs given, lr and gradient_scale{} and then {} for each parameter expected",
          name(), in.size(), sums_ == Sums::reads ? ", block sums" : "", each);
  for (size_t i = 0; i < kScalars; ++i)
    require(in[i].desc.shape.rank() == 0 && in[i].desc.dtype == DType::f32,
            "{}: input {} is {}, an f32 scalar is needed", name(), i, in[i].desc.to_string());
  int64_t blocks = 0;
  for (size_t i = first; i < in.size(); ++i) {
    const graph::ValueType& w = in[i - (i - first) % each];
    require(in[i].desc.shape == w.desc.shape && in[i].desc.dtype == DType::f32 && !in[i].batched,
            "{}: input {} is {}, the parameter is {}", name(), i, in[i].desc.to_string(),
            w.desc.to_string());
    if (&in[i] == &w) blocks += sum_blocks(w.desc.layout.storage_elements(w.desc.shape));
  }
  const graph::ValueType sums{{DType::f32, Shape{blocks, 2}, {}}, false};
  if (sums_ == Sums::reads)
    require(in[kScalars].desc == sums.desc && !in[kScalars].batched,
            "{}: the block sums are {}, the parameters have {}", name(),
            in[kScalars].desc.to_string(), sums.desc.to_string());
  return sums_ == Sums::writes ? std::vector{sums} : std::vector<graph::ValueType>{};
}

namespace {

/// The texts leave out defaults, which most updates have.
std::string clip_text(double clip) { return clip > 0 ? fmt::format(" clip {}", clip) : ""; }
std::string rate_text(double rate) { return rate == 1 ? "" : fmt::format(" rate {}", rate); }

std::string lamb_text(const LambAttributes& a) {
  return fmt::format("beta {},{} eps {} weight_decay {}{}", a.beta1, a.beta2, a.eps, a.weight_decay,
                     rate_text(a.rate));
}

}  // namespace

std::string SgdUpdate::attributes() const {
  return fmt::format("momentum {} weight_decay {}{}{}{}", a_.momentum, a_.weight_decay,
                     a_.nesterov ? " nesterov" : "", rate_text(a_.rate), clip_text(a_.clip));
}

std::string AdamUpdate::attributes() const {
  return fmt::format("beta {},{} eps {} weight_decay {}{}{}{}", a_.beta1, a_.beta2, a_.eps,
                     a_.weight_decay, a_.decoupled ? " decoupled" : "", rate_text(a_.rate),
                     clip_text(a_.clip));
}

std::string RmspropUpdate::attributes() const {
  return fmt::format("rho {} eps {} weight_decay {}{}{}", a_.rho, a_.eps, a_.weight_decay,
                     rate_text(a_.rate), clip_text(a_.clip));
}

std::string LarsUpdate::attributes() const {
  return fmt::format("momentum {} weight_decay {} trust {} eps {}{}", a_.momentum, a_.weight_decay,
                     a_.trust, a_.eps, rate_text(a_.rate));
}

std::string LambMoments::attributes() const { return lamb_text(a_); }
std::string LambUpdate::attributes() const { return lamb_text(a_); }

std::string WeightAverage::attributes() const {
  return fmt::format("decay {} from {}", a_.decay, a_.from);
}

}  // namespace tutti::ops
