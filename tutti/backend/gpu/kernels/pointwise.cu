// Kernels whose results depend on operands at the same place. Their threads never meet.

#include "tutti/backend/gpu/kernels/pointwise.h"

#include <utility>

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

using Rule = PointwiseRule;

TUTTI_DEVICE int64_t element_thread() {
  return static_cast<int64_t>(blockIdx.x) * kPointwiseThreads + threadIdx.x;
}

TUTTI_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// gelu_tanh: (1 + tanh(u)) / 2 is the sigmoid of 2 u.
constexpr float kGeluFactor = 1.5957691f;  // 2 sqrt(2 / pi)
constexpr float kGeluCube = 0.044715f;
TUTTI_DEVICE float gelu_exponent(float x) { return kGeluFactor * (x + kGeluCube * x * x * x); }
TUTTI_DEVICE float gelu_part(float x) { return 0.5f * (1.0f + erff(x * 0.70710678f)); }

/// tanh(log(1 + exp(x))) = n / (n + 2) with n = exp(x) (exp(x) + 2), which is 1 for large x.
TUTTI_DEVICE float mish_factor(float x) {
  constexpr float kOne = 20;  // from here on
  const float e = expf(x < kOne ? x : kOne), n = e * (e + 2.0f);
  return n / (n + 2.0f);
}

/// Returns y of a rule with a = x, or dx of a gradient with a = dy and b = y or x.
template <Rule kRule>
TUTTI_DEVICE float result(float a, float b, float number) {
  switch (kRule) {
    case Rule::add: return a + b;
    case Rule::mul: return a * b;
    case Rule::scale: return number * a;
    case Rule::relu: return a < 0 ? 0.0f : a;
    case Rule::leaky_relu: return 0 < a ? a : number * a;
    case Rule::sigmoid: return sigmoid(a);
    case Rule::tanh: return tanhf(a);
    case Rule::gelu: return a * gelu_part(a);
    case Rule::gelu_tanh: return a * sigmoid(gelu_exponent(a));
    case Rule::silu: return a * sigmoid(a);
    case Rule::mish: return a * mish_factor(a);
    case Rule::relu_grad: return b > 0 ? a : 0.0f;
    case Rule::leaky_relu_grad: return 0 < b ? a : number * a;
    case Rule::sigmoid_grad: return a * b * (1.0f - b);
    case Rule::tanh_grad: return a * (1.0f - b * b);
    case Rule::gelu_grad: return a * (gelu_part(b) + b * expf(-0.5f * b * b) * 0.39894228f);
    case Rule::gelu_tanh_grad: {
      const float s = sigmoid(gelu_exponent(b)),
                  slope = kGeluFactor * (1.0f + 3 * kGeluCube * b * b);
      return a * s * (1.0f + b * (1.0f - s) * slope);
    }
    case Rule::silu_grad: {
      const float s = sigmoid(b);
      return a * s * (1.0f + b * (1.0f - s));
    }
    case Rule::mish_grad: {
      const float t = mish_factor(b);
      return a * (t + b * (1.0f - t * t) * sigmoid(b));
    }
  }
  return 0;
}

template <Rule kRule>
constexpr bool kHasTwo = kRule == Rule::add || kRule == Rule::mul || kRule >= Rule::relu_grad;

template <class T, Rule kRule>
TUTTI_KERNEL(kPointwiseThreads)
pointwise(PointwiseArgs a) {
  constexpr int kPack = 16 / sizeof(T);
  constexpr bool kPair = kHasTwo<kRule>;
  const int64_t i = element_thread();
  const T* const left = static_cast<const T*>(a.a);
  const T* const right = static_cast<const T*>(kPair ? a.b : a.a);
  T* const y = static_cast<T*>(a.y);
  if (i < a.packs) {
    const int64_t at = i * kPack;
    Pack<T, kPack> v = load<kPack>(left + at), w = v;
    if (kPair) w = load<kPack>(right + at);
    for (int k = 0; k < kPack; ++k)
      from_float(result<kRule>(to_float(v.at[k]), to_float(w.at[k]), a.number), v.at[k]);
    store<kPack>(y + at, v);
    return;
  }
  const int64_t at = i + a.packs * (kPack - 1);
  if (at >= a.count) return;
  const float v = to_float(load(left + at)), w = kPair ? to_float(load(right + at)) : v;
  T r;
  from_float(result<kRule>(v, w, a.number), r);
  store(y + at, r);
}

/// Draws a block of Philox4x32-10 (base/numeric/rng.h).
struct Draw {
  uint32_t word[4];
};
TUTTI_DEVICE Draw philox(Draw counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

TUTTI_DEVICE Pack<uint32_t, 4> step_of(const DrawNumbers* numbers) {
  return load<4>(reinterpret_cast<const uint32_t*>(numbers));
}

/// Returns block `quad` of the random bits of a sample, as ops::sample_bits().
TUTTI_DEVICE Draw sample_bits(const Pack<uint32_t, 4>& step, uint32_t purpose, uint32_t salt,
                              int64_t sample, int64_t quad) {
  return philox(
      {{static_cast<uint32_t>(quad), static_cast<uint32_t>(sample), step.at[2], step.at[3]}},
      step.at[0] ^ (purpose * 0x85EBCA6Bu), step.at[1] ^ salt);
}

template <class T>
TUTTI_DEVICE T kept(T x, uint32_t bits, const DropoutArgs& a) {
  T y;
  from_float(to_float(x) * (bits < a.threshold ? 0.0f : a.keep), y);
  return y;
}

/// The threads of neighbouring channels follow each other where these lie side by side.
template <class T>
TUTTI_KERNEL(kPointwiseThreads)
dropout(DropoutArgs a) {
  int64_t rest = element_thread();
  const int64_t inner = a.channel_step == 1 ? a.channels : a.blocks;
  const int64_t minor = rest % inner;
  rest /= inner;
  const int64_t outer = a.channel_step == 1 ? a.blocks : a.channels;
  const int64_t major = rest % outer, sample = rest / outer;
  if (sample >= a.samples) return;
  const int64_t c = a.channel_step == 1 ? minor : major,
                block = a.channel_step == 1 ? major : minor;
  const int64_t row = c * a.all + a.first, quad = row / 4 + block;
  const int64_t p = quad * 4 - row;  // the position of the block's first number
  if (p >= a.positions) return;
  const Draw bits = sample_bits(step_of(a.numbers), a.purpose, a.salt, sample, quad);
  const int64_t from = sample * a.channels * a.positions + c * a.channel_step;
  const T* const x = static_cast<const T*>(a.x) + from;
  T* const y = static_cast<T*>(a.y) + from;
  if (a.packs && p >= 0 && p + 4 <= a.positions) {
    Pack<T, 4> v = load<4>(x + p);
    for (int k = 0; k < 4; ++k) v.at[k] = kept(v.at[k], bits.word[k], a);
    return store<4>(y + p, v);
  }
  for (int64_t k = 0; k < 4; ++k) {
    if (p + k < 0 || p + k >= a.positions) continue;
    const int64_t at = (p + k) * a.position_step;
    store(y + at, kept(load(x + at), bits.word[k], a));
  }
}

/// Returns e of the element at a place. Logarithm and cosine are of double precision, as the
/// host's: whatever their last bits are, the float is nearly always the same.
TUTTI_DEVICE float gaussian_draw(const GaussianSampleArgs& a, const Pack<uint32_t, 4>& step,
                                 int64_t at) {
  constexpr double kTurn = 2 * 3.141592653589793;
  const int64_t size = a.channels * a.positions, sample = at / size, place = at - sample * size;
  const int64_t position = place / a.channels,
                element = (place - position * a.channels) * a.positions + position;
  const Draw bits = sample_bits(step, a.purpose, a.salt, sample, element / 2);
  const bool second = element % 2 != 0;
  const double u = ((second ? bits.word[2] : bits.word[0]) + 1.0) * 0x1p-32,
               v = (second ? bits.word[3] : bits.word[1]) * 0x1p-32;
  return static_cast<float>(sqrt(-2 * log(u)) * cos(kTurn * v));
}

template <class T>
TUTTI_DEVICE T gaussian_of(T mean, T logvar, float factor, float e) {
  T z;
  from_float(to_float(mean) + expf(factor * to_float(logvar)) * e, z);
  return z;
}

template <class T>
TUTTI_KERNEL(kPointwiseThreads)
gaussian_sample(GaussianSampleArgs a) {
  const int64_t first = kDrawn * element_thread();
  const T *const mean = static_cast<const T*>(a.mean), *const logvar =
                                                           static_cast<const T*>(a.logvar);
  T* const z = static_cast<T*>(a.z);
  const Pack<uint32_t, 4> step = step_of(a.numbers);
  if (a.packs && first + kDrawn <= a.count) {
    Pack<T, kDrawn> v = load<kDrawn>(mean + first);
    const Pack<T, kDrawn> w = load<kDrawn>(logvar + first);
    for (int k = 0; k < kDrawn; ++k)
      v.at[k] = gaussian_of(v.at[k], w.at[k], a.factor, gaussian_draw(a, step, first + k));
    return store<kDrawn>(z + first, v);
  }
  for (int64_t at = first; at < first + kDrawn && at < a.count; ++at)
    store(z + at,
          gaussian_of(load(mean + at), load(logvar + at), a.factor, gaussian_draw(a, step, at)));
}

constexpr size_t kRules = std::size(kPointwiseF32), kOthers = 4;
using Functions = device::DeviceFunction[2 * kRules + kOthers];

template <size_t... kRule>
std::span<const device::DeviceFunction> functions_of(std::index_sequence<kRule...>) {
  static const Functions list = {
      device_function<pointwise<float, Rule{kRule}>>(kPointwiseF32[kRule], kPointwiseThreads,
                                                     true)...,
      device_function<pointwise<bf16, Rule{kRule}>>(kPointwiseBf16[kRule], kPointwiseThreads,
                                                    true)...,
      device_function<dropout<float>>("dropout.f32", kPointwiseThreads, true),
      device_function<dropout<bf16>>("dropout.bf16", kPointwiseThreads, true),
      device_function<gaussian_sample<float>>("gaussian_sample.f32", kPointwiseThreads, true),
      device_function<gaussian_sample<bf16>>("gaussian_sample.bf16", kPointwiseThreads, true)};
  return list;
}

}  // namespace

std::span<const device::DeviceFunction> pointwise_functions() {
  return functions_of(std::make_index_sequence<kRules>());
}

}  // namespace tutti::backend
