#include "tutti/ops/power_spectrum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// The waves of the fields of a tensor [N, C, spatial...], in the order of its positions.
struct Waves {
  std::array<int64_t, 3> extents{1, 1, 1};
  int64_t positions = 1, shells;
  std::vector<int64_t> shell;   ///< shell of each wave, -1: none
  std::vector<double> members;  ///< waves in each shell

  explicit Waves(const Shape& x) {
    const ops::WaveShells all{x.from(2)};
    const auto rank = static_cast<size_t>(all.extents.rank());
    std::ranges::copy(all.extents, extents.begin());
    positions = x.elements_from(2);
    shells = all.count();
    members.assign(static_cast<size_t>(shells), 0);
    for (int64_t i = 0; i < positions; ++i) {
      const std::array<int64_t, 3> index{i / extents[2] / extents[1], i / extents[2] % extents[1],
                                         i % extents[2]};
      shell.push_back(all.shell_of(std::span(index).first(rank)));
      if (shell.back() >= 0) ++members[static_cast<size_t>(shell.back())];
    }
  }
};

using Field = std::vector<std::complex<double>>;

/// Computes f[k] = sum of f[r] exp(sign 2 pi i k r / s), one dimension after the other.
void transform(const Waves& waves, Field& f, double sign) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t s = waves.extents[axis];
    int64_t inner = 1;
    for (size_t d = axis + 1; d < 3; ++d) inner *= waves.extents[d];
    Field line(static_cast<size_t>(s));
    for (int64_t i = 0; i < waves.positions; ++i) {
      if (i / inner % s != 0) continue;  // it is not the first of a line
      for (int64_t k = 0; k < s; ++k) {
        std::complex<double> sum = 0;
        for (int64_t r = 0; r < s; ++r)
          sum += f[static_cast<size_t>(i + r * inner)] *
                 std::polar(1., sign * 2 * std::numbers::pi * static_cast<double>(k * r % s) /
                                    static_cast<double>(s));
        line[static_cast<size_t>(k)] = sum;
      }
      for (int64_t k = 0; k < s; ++k)
        f[static_cast<size_t>(i + k * inner)] = line[static_cast<size_t>(k)];
    }
  }
}

Field transformed(const Waves& waves, const PlainTensor& x, int64_t field) {
  Field f(static_cast<size_t>(waves.positions));
  for (int64_t i = 0; i < waves.positions; ++i)
    f[static_cast<size_t>(i)] = x[field * waves.positions + i];
  transform(waves, f, -1);
  return f;
}

Rule forward(const Shape& x, double floor) {
  return {.run = [waves = Waves(x), floor](const RuleCall& call) {
    PlainTensor& y = call.out[0];
    y.fill(0);
    for (int64_t field = 0; field < y.size() / waves.shells; ++field) {
      const Field f = transformed(waves, call.in[0], field);
      for (size_t k = 0; k < f.size(); ++k)
        if (const int64_t b = waves.shell[k]; b >= 0)
          y[field * waves.shells + b] += std::norm(f[k]) / waves.members[static_cast<size_t>(b)];
    }
    for (int64_t i = 0; i < y.size(); ++i)
      y[i] = std::log(floor + y[i] / static_cast<double>(waves.positions));
  }};
}

Rule backward(const Shape& x) {
  return {.run = [waves = Waves(x)](const RuleCall& call) {
    PlainTensor& dx = call.out[0];
    for (int64_t field = 0; field < dx.size() / waves.positions; ++field) {
      Field f = transformed(waves, call.in[2], field);
      for (size_t k = 0; k < f.size(); ++k) {
        const int64_t b = waves.shell[k], i = field * waves.shells + b;
        f[k] *= b < 0 ? 0
                      : call.in[0][i] * std::exp(-call.in[1][i]) /
                            waves.members[static_cast<size_t>(b)];
      }
      transform(waves, f, 1);
      for (int64_t i = 0; i < waves.positions; ++i)
        dx[field * waves.positions + i] =
            2 * f[static_cast<size_t>(i)].real() / static_cast<double>(waves.positions);
    }
  }};
}

}  // namespace

void register_spectrum_rules(RuleTable& table) {
  table.add<ops::PowerSpectrum>([](const ops::PowerSpectrum& op, const KernelRequest& r) {
    return forward(r.in[0].shape, op.spectrum().floor);
  });
  table.add<ops::PowerSpectrumGrad>([](const ops::PowerSpectrumGrad&, const KernelRequest& r) {
    return backward(r.in[2].shape);
  });
}

}  // namespace tutti::backend
