#include "tutti/backend/cpu/matrix/matrix_weights.h"

#include <gtest/gtest.h>

#include "tutti/backend/cpu/kernel/tiled_run.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::backend {
namespace {

using testing::Values;

/// A convolution of channels-last images: 3x3, whose taps reach far into the padding, or 1x1.
struct Case {
  int64_t samples = 2, side = 25, channels = 9, outputs = 18, dilation = 9, stride = 1, kernel = 3;
  ops::ConvAttributes attributes() const {
    ops::ConvAttributes a;
    for (size_t d = 0; d < 2; ++d) {
      a.stride[d] = stride;
      a.dilation[d] = dilation;
      a.pad_low[d] = a.pad_high[d] = kernel / 2 * dilation;
    }
    return a;
  }
  int64_t y_side() const { return (side - 1) / stride + 1; }
  Shape x() const { return {samples, channels, side, side}; }
  Shape y() const { return {samples, outputs, y_side(), y_side()}; }
  Shape w() const { return {outputs, channels, kernel, kernel}; }
  int64_t taps() const { return kernel * kernel; }
};

/// Returns dw[o][i][row][column] by its definition, from x [n, row, column, channel] and a dy of
/// the same form.
std::vector<double> definition(const Case& c, const Values& x, const Values& dy) {
  std::vector<double> dw(static_cast<size_t>(c.w().elements()));
  const int64_t out = c.y_side();
  for (int64_t n = 0; n < c.samples; ++n)
    for (int64_t h = 0; h < out; ++h)
      for (int64_t w = 0; w < out; ++w)
        for (int64_t tap = 0; tap < c.taps(); ++tap) {
          const int64_t ih = h * c.stride + (tap / c.kernel - c.kernel / 2) * c.dilation,
                        iw = w * c.stride + (tap % c.kernel - c.kernel / 2) * c.dilation;
          if (ih < 0 || ih >= c.side || iw < 0 || iw >= c.side) continue;
          const size_t from = static_cast<size_t>(((n * c.side + ih) * c.side + iw) * c.channels),
                       to = static_cast<size_t>(((n * out + h) * out + w) * c.outputs);
          for (int64_t o = 0; o < c.outputs; ++o)
            for (int64_t i = 0; i < c.channels; ++i)
              dw[static_cast<size_t>((o * c.channels + i) * c.taps() + tap)] +=
                  double{x[from + static_cast<size_t>(i)]} *
                  double{dy[to + static_cast<size_t>(o)]};
        }
  return dw;
}

template <class T>
device::Buffer stored(const Values& values) {
  device::Buffer buffer(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) buffer.as<T>()[i] = T(values[i]);
  return buffer;
}

/// Checks dw of two tiles, both with the same x and dy, in chunks of at most `chunk` elements.
template <class T>
void expect_definition(const Case& c, DType type, int64_t chunk) {
  const auto values = [&](const Shape& shape, uint64_t seed) {
    return testing::rounded(testing::random_values(shape.elements(), seed), type);
  };
  const Values x = values(c.x(), 1), dy = values(c.y(), 2);
  const auto sliding = matrix::Sliding::of(c.attributes(), c.x(), c.y(), c.w());
  const auto kernel = matrix::make_weights_kernel({.lattice = matrix::forward_lattice(sliding),
                                                   .samples = c.samples,
                                                   .x_pixels = c.side * c.side,
                                                   .channels = c.channels,
                                                   .outputs = c.outputs,
                                                   .chunk = chunk},
                                                  type);
  const device::Buffer xs = stored<T>(x), dys = stored<T>(dy), workspace(kernel->workspace_bytes()),
                       state(kernel->state_bytes());
  std::fill_n(state.as<float>().data(), state.bytes() / sizeof(float), 1e9F);
  void* in[] = {xs.data(), dys.data()};
  for (const bool first : {true, false}) {
    KernelArgs args;
    args.in = in;
    args.workspace = workspace.data();
    args.state = state.data();
    args.first = first;
    kernel->run(args);
  }
  const std::vector<double> want = definition(c, x, dy);
  for (int64_t o = 0; o < c.outputs; ++o)
    for (int64_t i = 0; i < c.channels; ++i)
      for (int64_t tap = 0; tap < c.taps(); ++tap) {
        const size_t at = static_cast<size_t>(((o / 16 * c.taps() + tap) * c.channels + i) * 16 +
                                              o % 16);  // [K/16, kernel, C, 16]
        ASSERT_NEAR(state.as<float>()[at],
                    2 * want[static_cast<size_t>((o * c.channels + i) * c.taps() + tap)], 2e-3)
            << o << " " << i << " " << tap << " in chunks of " << chunk;
      }
}

TEST(MatrixWeights, AreTheSameInChunks) {
  for (const Case& c : {Case{}, Case{.samples = 3, .side = 23, .dilation = 22},
                        Case{.samples = 5, .side = 29, .stride = 2},
                        Case{.samples = 3, .channels = 70, .outputs = 90, .kernel = 1},
                        Case{.channels = 33, .outputs = 49, .stride = 2, .kernel = 1}})
    for (const int64_t chunk : {1, 512 * 32, 1 << 19}) {
      expect_definition<float>(c, DType::f32, chunk);
      expect_definition<bf16>(c, DType::bf16, chunk);
    }
}

}  // namespace
}  // namespace tutti::backend
