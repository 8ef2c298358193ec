#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <vector>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/ops/power_spectrum.h"

namespace tutti::backend {
namespace {

/// Returns the spectrum of one field.
std::vector<float> spectrum_of(const Shape& extents, const std::vector<float>& field) {
  std::vector<int64_t> shape{1, 1};
  shape.insert(shape.end(), extents.begin(), extents.end());
  const ops::PowerSpectrum op{ops::PowerSpectrumAttributes{}};
  const graph::ValueType x{{DType::f32, Shape(std::span<const int64_t>(shape)), {}}, true};
  KernelRequest request{&op, {x.desc}, {op.infer(std::span(&x, 1))[0].desc}, {}, {}};
  const auto kernel = CpuBackend().candidates(request)[0].make();
  device::Buffer workspace(kernel->workspace_bytes());
  std::vector<float> y(static_cast<size_t>(request.out[0].elements()));
  void* in[] = {const_cast<float*>(field.data())};
  void* out[] = {y.data()};
  kernel->run({.in = in, .out = out, .workspace = workspace.data()});
  return y;
}

std::vector<float> plane_wave(const Shape& extents, const std::array<int64_t, 3>& k) {
  std::vector<float> field;
  for (int64_t i = 0; i < extents.elements(); ++i) {
    double turns = 0;
    int64_t rest = i;
    for (int d = extents.rank(); d-- > 0; rest /= extents[d])
      turns += static_cast<double>(k[static_cast<size_t>(d)] * (rest % extents[d])) /
               static_cast<double>(extents[d]);
    field.push_back(static_cast<float>(std::cos(2 * std::numbers::pi * turns)));
  }
  return field;
}

/// A wave of amplitude 1 and its conjugate have |X| = P / 2 each, so their total power is P / 2,
/// shared by the waves of the shell.
TEST(PowerSpectrum, OfAPlaneWaveIsInItsShell) {
  const Shape extents{64, 64, 64};
  const ops::WaveShells shells{extents};
  int64_t members = 0;  // waves in shell 4: |k| of 4.5 to 5.5
  for (int64_t i = 0; i < extents.elements(); ++i) {
    const std::array<int64_t, 3> index{i / 4096, i / 64 % 64, i % 64};
    members += shells.shell_of(index) == 4;
  }
  const std::vector<float> y = spectrum_of(extents, plane_wave(extents, {3, -4, 1}));  // |k| 5.1
  ASSERT_EQ(y.size(), 32u);
  const double expected =
      static_cast<double>(extents.elements()) / 2 / static_cast<double>(members);
  for (size_t b = 0; b < y.size(); ++b)
    EXPECT_NEAR(y[b], std::log(1e-6 + (b == 4 ? expected : 0)), b == 4 ? 1e-5 : 1e-2) << b;
}

TEST(PowerSpectrum, OfWhiteNoiseIsItsVariance) {
  const Shape extents{48, 96};
  std::vector<float> field;
  Rng rng(1, Purpose::test, 0);
  for (int64_t i = 0; i < extents.elements(); ++i)
    field.push_back(3 * static_cast<float>(rng.normal()));
  const std::vector<float> y = spectrum_of(extents, field);
  ASSERT_EQ(y.size(), 48u);
  double mean = 0;
  for (const float power : y) mean += std::exp(power) / static_cast<double>(y.size());
  EXPECT_NEAR(mean, 9, 1.5);
}

/// Lengths count, not numbers of periods: two periods in the shorter extent are as short as four in
/// the longer one.
TEST(PowerSpectrum, ShellsCountInTheLongestExtent) {
  const Shape extents{16, 32};
  for (const auto& k : {std::array<int64_t, 3>{2, 0, 0}, std::array<int64_t, 3>{0, 4, 0}}) {
    const std::vector<float> y = spectrum_of(extents, plane_wave(extents, k));
    for (size_t b = 0; b < y.size(); ++b) EXPECT_EQ(y[b] > -5, b == 3) << b;
  }
}

TEST(PowerSpectrum, IsThatOfAShiftedField) {
  const Shape extents{12, 10, 7};
  std::vector<float> field, shifted(static_cast<size_t>(extents.elements()));
  Rng rng(2, Purpose::test, 0);
  for (int64_t i = 0; i < extents.elements(); ++i)
    field.push_back(static_cast<float>(rng.normal()));
  for (int64_t i = 0; i < extents.elements(); ++i) {
    const int64_t d = (i / 70 + 5) % 12, h = (i / 7 % 10 + 3) % 10, w = (i % 7 + 2) % 7;
    shifted[static_cast<size_t>((d * 10 + h) * 7 + w)] = field[static_cast<size_t>(i)];
  }
  const std::vector<float> y = spectrum_of(extents, field), z = spectrum_of(extents, shifted);
  for (size_t b = 0; b < y.size(); ++b) EXPECT_NEAR(y[b], z[b], 1e-4) << b;
}

TEST(PowerSpectrum, OfOnePositionIsRefused) {
  const ops::PowerSpectrum op{ops::PowerSpectrumAttributes{}};
  const graph::ValueType x{{DType::f32, Shape{2, 3, 1, 1}, {}}, true};
  EXPECT_THROW(op.infer(std::span(&x, 1)), ConfigError);
}

}  // namespace
}  // namespace tutti::backend
