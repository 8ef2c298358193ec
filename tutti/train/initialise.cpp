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

double both_fans(const InitialTensor& t) {
  CHECK(t.init.fan == 0, "{}: Glorot's fans are both taken from the shape", t.name);
  const Fans fans = fans_of(t);
  return fans.in + fans.out;
}

/// Where a value's draws are in its stream.
struct Draws {
  uint64_t before = 0, each = 1;
};

/// fill(stream at the block's first draw, block): of large tensors each thread touches its own
/// first.
void fill_blocks(const Rng& stream, Draws draws, std::span<float> values, const auto& fill) {
  constexpr size_t kBlock = size_t{1} << 16;
  const auto blocks = static_cast<int64_t>((values.size() + kBlock - 1) / kBlock);
#pragma omp parallel for if (blocks > 16)
  for (int64_t b = 0; b < blocks; ++b) {
    const size_t begin = static_cast<size_t>(b) * kBlock;
    Rng rng = stream;
    rng.skip(draws.before + draws.each * begin);
    fill(rng, values.subspan(begin, std::min(kBlock, values.size() - begin)));
  }
}

}  // namespace

void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values) {
  CHECK(static_cast<size_t>(tensor.shape.elements()) == values.size(), "{}: {} values for {}",
        tensor.name, values.size(), tensor.shape.to_string());
  Rng rng(seed, Purpose::weights, XXH64(tensor.name.data(), tensor.name.size(), 0));
  const auto fill_normal = [&](double variance) {
    const auto deviation = static_cast<float>(std::sqrt(variance));
    fill_blocks(rng, {.each = 2}, values, [&](Rng& own, std::span<float> block) {
      for (float& v : block) v = deviation * own.normal();
    });
  };
  const auto fill_uniform = [&](double limit) {
    const auto bound = static_cast<float>(limit);
    for (float& v : values) v = bound * (2 * rng.uniform() - 1);
  };
  const auto fill_truncated = [&](double deviation) {
    for (float& v : values) {
      do v = rng.normal();
      while (std::abs(v) > 2);
      v *= static_cast<float>(deviation);
    }
  };
  const double value = tensor.init.value;
  switch (tensor.init.kind) {
    case Init::Kind::zeros: std::ranges::fill(values, 0.0f); return;
    case Init::Kind::ones: std::ranges::fill(values, 1.0f); return;
    case Init::Kind::constant: std::ranges::fill(values, static_cast<float>(value)); return;
    case Init::Kind::normal: fill_normal(value * value); return;
    case Init::Kind::truncated_normal: fill_truncated(value); return;
    case Init::Kind::uniform: fill_uniform(value); return;
    case Init::Kind::kaiming_normal_fan_out: fill_normal(2 / fans_of(tensor).out); return;
    case Init::Kind::kaiming_normal_fan_in: fill_normal(2 / fans_of(tensor).in); return;
    case Init::Kind::kaiming_uniform_fan_out:
      fill_uniform(std::sqrt(6 / fans_of(tensor).out));
      return;
    case Init::Kind::kaiming_uniform_fan_in:
      fill_uniform(std::sqrt(6 / fans_of(tensor).in));
      return;
    case Init::Kind::uniform_fan_in: fill_uniform(1 / std::sqrt(fans_of(tensor).in)); return;
    case Init::Kind::glorot_uniform: fill_uniform(std::sqrt(6 / both_fans(tensor))); return;
    case Init::Kind::glorot_normal: fill_normal(2 / both_fans(tensor)); return;
  }
}

void initialise_rows(const InitialTensor& tensor, uint64_t seed, int64_t first,
                     std::span<float> values) {
  if (tensor.init.kind != Init::Kind::uniform) {
    CHECK(tensor.init.kind == Init::Kind::zeros || tensor.init.kind == Init::Kind::constant,
          "{}: first values of a table", tensor.name);
    return initialise(tensor, seed, values);
  }
  const uint64_t stream = XXH64(tensor.name.data(), tensor.name.size(), 0);
  const auto before = static_cast<uint64_t>(first) * static_cast<uint64_t>(tensor.shape[1]);
  const auto bound = static_cast<float>(tensor.init.value);
  fill_blocks(Rng(seed, Purpose::weights, stream), {.before = before}, values,
              [&](Rng& rng, std::span<float> block) {
                for (float& v : block) v = bound * (2 * rng.uniform() - 1);
              });
}

}  // namespace tutti
