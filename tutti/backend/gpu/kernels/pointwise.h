#pragma once
// Arguments of the kernels whose results depend on operands at the same place.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tutti/backend/gpu/kernels/numbers.h"

namespace tutti::backend {

constexpr int kPointwiseThreads = 256;

/// The rules y = f(a, b). Activations and their gradients are in the order of ops::ActivationKind;
/// a gradient's operands are dy and the result or the input, as in ops::ActivationGrad.
enum class PointwiseRule : uint8_t {
  add,
  mul,
  scale,
  relu,
  leaky_relu,
  sigmoid,
  tanh,
  gelu,
  gelu_tanh,
  silu,
  mish,
  relu_grad,
  leaky_relu_grad,
  sigmoid_grad,
  tanh_grad,
  gelu_grad,
  gelu_tanh_grad,
  silu_grad,
  mish_grad
};

/// The functions' names, by rule.
constexpr std::string_view kPointwiseF32[] = {"add.f32",
                                              "mul.f32",
                                              "scale.f32",
                                              "relu.f32",
                                              "leaky_relu.f32",
                                              "sigmoid.f32",
                                              "tanh.f32",
                                              "gelu.f32",
                                              "gelu_tanh.f32",
                                              "silu.f32",
                                              "mish.f32",
                                              "relu_grad.f32",
                                              "leaky_relu_grad.f32",
                                              "sigmoid_grad.f32",
                                              "tanh_grad.f32",
                                              "gelu_grad.f32",
                                              "gelu_tanh_grad.f32",
                                              "silu_grad.f32",
                                              "mish_grad.f32"};
constexpr std::string_view kPointwiseBf16[] = {"add.bf16",
                                               "mul.bf16",
                                               "scale.bf16",
                                               "relu.bf16",
                                               "leaky_relu.bf16",
                                               "sigmoid.bf16",
                                               "tanh.bf16",
                                               "gelu.bf16",
                                               "gelu_tanh.bf16",
                                               "silu.bf16",
                                               "mish.bf16",
                                               "relu_grad.bf16",
                                               "leaky_relu_grad.bf16",
                                               "sigmoid_grad.bf16",
                                               "tanh_grad.bf16",
                                               "gelu_grad.bf16",
                                               "gelu_tanh_grad.bf16",
                                               "silu_grad.bf16",
                                               "mish_grad.bf16"};

/// A thread takes a pack of 16 bytes, and after the last pack one element.
struct PointwiseArgs {
  const void* a;
  const void* b;  ///< null: the rule has one operand
  void* y;
  int64_t count, packs;
  float number;  ///< scale: the factor; leaky_relu: the slope
};

/// y = x * keep, or x * 0 where the random number of the element is below the threshold. A sample
/// has `channels` rows of `positions`, which are the positions from `first` on of `all`; element
/// c * all + first + p has its place at c * channel_step + p * position_step. A thread takes the
/// elements of one block of random numbers, of which there are `blocks` for each row at most.
struct DropoutArgs {
  const void* x;
  void* y;
  const DrawNumbers* numbers;
  int64_t samples, channels, positions, blocks;
  int64_t first, all, channel_step, position_step;
  uint32_t threshold, purpose, salt;
  float keep;
  bool packs;  ///< four elements of one block of random numbers are a pack
};

constexpr int kDrawn = 2;

/// z = mean + exp(factor * logvar) * e, with e of the element as ops::gaussian_draw() draws it. A
/// thread takes kDrawn elements, a pack if all places are such of packs; a sample has `channels`
/// rows of `positions`, with the channels innermost, or one channel if its memory is in the order
/// of its indices.
struct GaussianSampleArgs {
  const void *mean, *logvar;
  void* z;
  const DrawNumbers* numbers;
  int64_t count, channels, positions;
  uint32_t purpose, salt;
  float factor;
  bool packs;
};

}  // namespace tutti::backend
