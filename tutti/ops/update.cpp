#include "tutti/ops/update.h"

#include "tutti/ops/shape_check.h"

namespace tutti {

std::vector<ValueType> Update::infer(std::span<const ValueType> in) const {
  require(in.size() > kScalars && (in.size() - kScalars) % static_cast<size_t>(arity()) == 0,
          "{}: {} inputs given, lr and gradient_scale and then {} for each parameter expected", name(), in.size(), arity());
  for (size_t i = 0; i < kScalars; ++i)
    require(in[i].desc.shape.rank() == 0 && in[i].desc.dtype == DType::f32, "{}: input {} is {}, an f32 scalar is needed", name(), i, in[i].desc.to_string());
  for (size_t i = kScalars; i < in.size(); ++i) {
    const ValueType& w = in[i - (i - kScalars) % static_cast<size_t>(arity())];
    require(in[i].desc.shape == w.desc.shape && in[i].desc.dtype == DType::f32 && !in[i].batched, "{}: input {} is {}, the parameter is {}", name(), i,
            in[i].desc.to_string(), w.desc.to_string());
  }
  return {};
}

std::string SgdUpdate::attributes() const {
  return fmt::format("momentum {} weight_decay {}{}", a_.momentum, a_.weight_decay, a_.nesterov ? " nesterov" : "");
}

std::string LarsUpdate::attributes() const {
  return fmt::format("momentum {} weight_decay {} trust {} eps {}", a_.momentum, a_.weight_decay, a_.trust, a_.eps);
}

std::string AdamUpdate::attributes() const {
  return fmt::format("beta {},{} eps {} weight_decay {}{}", a_.beta1, a_.beta2, a_.eps, a_.weight_decay, a_.decoupled ? " decoupled" : "");
}

}  // namespace tutti
