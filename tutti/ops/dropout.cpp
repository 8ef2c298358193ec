#include "tutti/ops/dropout.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

/// FNV-1a.
uint32_t salt_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

std::string Dropout::attributes() const {
  const std::string text = fmt::format("probability {} salt {}", probability_, salt_);
  return all_ == 0 ? text : fmt::format("{} first {} all {}", text, first_, all_);
}

std::vector<ValueType> Dropout::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 2);
  require(probability_ >= 0 && probability_ < 1, "dropout: probability {} is not in [0, 1)",
          probability_);
  require(all_ == 0 ||
              (in[0].desc.shape.rank() == 3 && first_ >= 0 && first_ + in[0].desc.shape[2] <= all_),
          "dropout: positions from {} on of {} in {}", first_, all_, in[0].desc);
  return {in[0]};
}

std::vector<Value> Dropout::grad(const GradArgs& args) const {
  return {args.append1(".dx", args.node.op, {args.dout[0]})};
}

}  // namespace tutti::ops
