#include "tutti/train/initialise.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti {
namespace {

struct Fans {
  double in;   ///< inputs that one output sums over
  double out;  ///< outputs that one input reaches
};

Fans fans_of(const InitialTensor& t) {
  if (t.init.fan > 0) return {static_cast<double>(t.init.fan), static_cast<double>(t.init.fan)};
  if (t.shape.rank() < 2 || t.shape.elements() == 0)
    throw ConfigError(
        fmt::format("parameter '{}' of shape {} has no fan to scale its first values by; Init::fan "
                    "must give it",
                    t.name, t.shape.to_string()));
  return {static_cast<double>(t.shape.elements() / t.shape[0]),
          static_cast<double>(t.shape.elements() / t.shape[1])};
}

}  // namespace

void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values) {
  CHECK(static_cast<size_t>(tensor.shape.elements()) == values.size(), "{}: {} values for {}",
        tensor.name, values.size(), tensor.shape.to_string());
  Rng rng(seed, Purpose::weights, XXH64(tensor.name.data(), tensor.name.size(), 0));
  const auto fill_normal = [&](double variance) {
    const auto deviation = static_cast<float>(std::sqrt(variance));
    for (float& v : values) v = deviation * rng.normal();
  };
  const auto fill_uniform = [&](double limit) {
    const auto bound = static_cast<float>(limit);
    for (float& v : values) v = bound * (2 * rng.uniform() - 1);
  };
  switch (tensor.init.kind) {
    case Init::Kind::zeros: std::ranges::fill(values, 0.0f); return;
    case Init::Kind::ones: std::ranges::fill(values, 1.0f); return;
    case Init::Kind::kaiming_normal_fan_out: fill_normal(2 / fans_of(tensor).out); return;
    case Init::Kind::kaiming_normal_fan_in: fill_normal(2 / fans_of(tensor).in); return;
    case Init::Kind::uniform_fan_in: fill_uniform(1 / std::sqrt(fans_of(tensor).in)); return;
    case Init::Kind::glorot_uniform: {
      CHECK(tensor.init.fan == 0, "{}: glorot_uniform takes both fans from the shape", tensor.name);
      const Fans fans = fans_of(tensor);
      fill_uniform(std::sqrt(6 / (fans.in + fans.out)));
      return;
    }
  }
}

}  // namespace tutti
