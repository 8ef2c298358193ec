#include "tutti/train/initialise.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti {
namespace {

/// Inputs that one output sums over, or outputs that one input reaches.
double fan_of(const InitialTensor& t) {
  if (t.init.fan > 0) return static_cast<double>(t.init.fan);
  if (t.shape.rank() < 2 || t.shape.elements() == 0)
    throw ConfigError(
        fmt::format("parameter '{}' of shape {} has no fan to scale its first values by; Init::fan "
                    "must give it",
                    t.name, t.shape.to_string()));
  const bool out = t.init.kind == Init::Kind::kaiming_normal_fan_out;
  return static_cast<double>(t.shape.elements() / t.shape[out ? 1 : 0]);
}

}  // namespace

void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values) {
  CHECK(static_cast<size_t>(tensor.shape.elements()) == values.size(), "{}: {} values for {}",
        tensor.name, values.size(), tensor.shape.to_string());
  Rng rng(seed, Purpose::weights, XXH64(tensor.name.data(), tensor.name.size(), 0));
  switch (tensor.init.kind) {
    case Init::Kind::zeros: std::ranges::fill(values, 0.0f); return;
    case Init::Kind::ones: std::ranges::fill(values, 1.0f); return;
    case Init::Kind::kaiming_normal_fan_out:
    case Init::Kind::kaiming_normal_fan_in: {
      const auto deviation = static_cast<float>(std::sqrt(2 / fan_of(tensor)));
      for (float& v : values) v = deviation * rng.normal();
      return;
    }
    case Init::Kind::uniform_fan_in: {
      const auto bound = static_cast<float>(1 / std::sqrt(fan_of(tensor)));
      for (float& v : values) v = bound * (2 * rng.uniform() - 1);
      return;
    }
  }
}

}  // namespace tutti
