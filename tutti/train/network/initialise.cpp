#include "tutti/train/network/initialise.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/normals.h"

namespace tutti::train {
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

constexpr size_t kInitialBlock = size_t{1} << 16;

/// Calls fill(number of a block's first value, block) on the thread that touches the block first.
void fill_blocks(std::span<float> values, const auto& fill) {
  const auto blocks = static_cast<int64_t>((values.size() + kInitialBlock - 1) / kInitialBlock);
#pragma omp parallel for if (blocks > 1)
  for (int64_t b = 0; b < blocks; ++b) {
    const size_t begin = static_cast<size_t>(b) * kInitialBlock;
    fill(uint64_t{begin}, values.subspan(begin, std::min(kInitialBlock, values.size() - begin)));
  }
}

void fill_normal(const NormalStream& stream, double variance, std::span<float> values) {
  const auto deviation = static_cast<float>(std::sqrt(variance));
  fill_blocks(values, [&](uint64_t first, std::span<float> block) {
    fill_normals(stream, first, block);
    for (float& v : block) v *= deviation;
  });
}

/// `before`: draws of the stream that other values use.
void fill_uniform(const NormalStream& stream, uint64_t before, double limit,
                  std::span<float> values) {
  const auto bound = static_cast<float>(limit);
  fill_blocks(values, [&](uint64_t first, std::span<float> block) {
    Rng rng(stream.seed, stream.purpose, stream.stream);
    rng.skip(before + first);
    for (float& v : block) v = bound * (2 * rng.uniform() - 1);
  });
}

/// Values beyond two deviations are drawn again: first as many are drawn as are wanted, then the
/// missing ones.
void fill_truncated(const NormalStream& stream, double deviation, std::span<float> values) {
  std::vector<float> drawn(std::min(values.size(), 64 * kInitialBlock));
  uint64_t before = 0;
  for (size_t done = 0; done < values.size(); before += drawn.size()) {
    fill_blocks(drawn, [&](uint64_t first, std::span<float> block) {
      fill_normals(stream, before + first, block);
    });
    for (size_t i = 0; i < drawn.size() && done < values.size(); ++i)
      if (std::abs(drawn[i]) <= 2) values[done++] = drawn[i] * static_cast<float>(deviation);
  }
}

NormalStream stream_of(const InitialTensor& tensor, uint64_t seed) {
  return {seed, Purpose::weights, XXH64(tensor.name.data(), tensor.name.size(), 0)};
}

}  // namespace

void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values) {
  CHECK(static_cast<size_t>(tensor.shape.elements()) == values.size(), "{}: {} values for {}",
        tensor.name, values.size(), tensor.shape.to_string());
  const NormalStream stream = stream_of(tensor, seed);
  const auto normal = [&](double variance) { fill_normal(stream, variance, values); };
  const auto uniform = [&](double limit) { fill_uniform(stream, 0, limit, values); };
  const double value = tensor.init.value;
  switch (tensor.init.kind) {
    case graph::Init::Kind::zeros: std::ranges::fill(values, 0.0f); return;
    case graph::Init::Kind::ones: std::ranges::fill(values, 1.0f); return;
    case graph::Init::Kind::constant: std::ranges::fill(values, static_cast<float>(value)); return;
    case graph::Init::Kind::normal: normal(value * value); return;
    case graph::Init::Kind::truncated_normal: fill_truncated(stream, value, values); return;
    case graph::Init::Kind::uniform: uniform(value); return;
    case graph::Init::Kind::kaiming_normal_fan_out: normal(2 / fans_of(tensor).out); return;
    case graph::Init::Kind::kaiming_normal_fan_in: normal(2 / fans_of(tensor).in); return;
    case graph::Init::Kind::kaiming_uniform_fan_out:
      uniform(std::sqrt(6 / fans_of(tensor).out));
      return;
    case graph::Init::Kind::kaiming_uniform_fan_in:
      uniform(std::sqrt(6 / fans_of(tensor).in));
      return;
    case graph::Init::Kind::uniform_fan_in: uniform(1 / std::sqrt(fans_of(tensor).in)); return;
    case graph::Init::Kind::glorot_uniform: uniform(std::sqrt(6 / both_fans(tensor))); return;
    case graph::Init::Kind::glorot_normal: normal(2 / both_fans(tensor)); return;
  }
}

void initialise_rows(const InitialTensor& tensor, uint64_t seed, int64_t first,
                     std::span<float> values) {
  if (tensor.init.kind != graph::Init::Kind::uniform) {
    CHECK(tensor.init.kind == graph::Init::Kind::zeros ||
              tensor.init.kind == graph::Init::Kind::constant,
          "{}: first values of a table", tensor.name);
    return initialise(tensor, seed, values);
  }
  const auto before = static_cast<uint64_t>(first) * static_cast<uint64_t>(tensor.shape[1]);
  fill_uniform(stream_of(tensor, seed), before, tensor.init.value, values);
}

}  // namespace tutti::train
