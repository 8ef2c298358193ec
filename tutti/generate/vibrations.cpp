#include "tutti/generate/vibrations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

using SquareMatrix = std::vector<std::vector<double>>;

/// Does one rotation of Jacobi's method: makes a[p][q] zero, and rotates the rows of `vectors` with
/// it.
void turn_pair(SquareMatrix& a, SquareMatrix& vectors, size_t p, size_t q) {
  if (a[p][q] == 0) return;
  const double ratio = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const double t = (ratio >= 0 ? 1 : -1) / (std::abs(ratio) + std::hypot(1.0, ratio));
  const double c = 1 / std::hypot(1.0, t), s = t * c;
  for (std::vector<double>& row : a) {
    const double x = row[p], y = row[q];
    row[p] = c * x - s * y;
    row[q] = s * x + c * y;
  }
  for (SquareMatrix* const m : {&a, &vectors})
    for (size_t i = 0; i < a.size(); ++i) {
      double &x = (*m)[p][i], &y = (*m)[q][i];
      const double before = x;
      x = c * before - s * y;
      y = s * before + c * y;
    }
}

/// Returns the stiffness between masses, divided by the square roots of both: symmetric.
SquareMatrix scaled_stiffness(const std::vector<double>& masses,
                              const std::vector<double>& springs) {
  const size_t n = masses.size();
  SquareMatrix a(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    a[i][i] = (springs[i] + (i + 1 < n ? springs[i + 1] : 0)) / masses[i];
    if (i + 1 < n)
      a[i][i + 1] = a[i + 1][i] = -springs[i + 1] / std::sqrt(masses[i] * masses[i + 1]);
  }
  return a;
}

double evenly(Rng& rng, double low, double high) {
  return low + (high - low) * static_cast<double>(rng.uniform());
}

float from_minus_one_to_one(double x, double low, double high) {
  return static_cast<float>(2 * (x - low) / (high - low) - 1);
}

void check_vibration(const VibrationSpec& spec) {
  if (spec.masses < 2 || spec.masses > 64 || spec.samples < 4 * kVibrationPiece ||
      spec.samples % kVibrationPiece != 0)
    throw ConfigError(fmt::format(
        "vibrations of {} masses at {} samples: give 2 to 64 masses, and a multiple of {} samples, "
        "at least {}",
        spec.masses, spec.samples, kVibrationPiece, 4 * kVibrationPiece));
}

}  // namespace

ChainModes chain_modes(const std::vector<double>& masses, const std::vector<double>& springs) {
  const size_t n = masses.size();
  CHECK(springs.size() == n && n > 0, "{} springs of {} masses", springs.size(), n);
  SquareMatrix a = scaled_stiffness(masses, springs), vectors(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) vectors[i][i] = 1;
  constexpr int kSweeps = 12;  // each squares the rest beside the diagonal
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) turn_pair(a, vectors, p, q);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return a[i][i]; });
  ChainModes modes;
  for (const size_t i : order) {
    modes.frequencies.push_back(std::sqrt(a[i][i]));
    for (size_t m = 0; m < n; ++m) vectors[i][m] /= std::sqrt(masses[m]);
    modes.shapes.push_back(vectors[i]);
  }
  return modes;
}

std::vector<double> ringing(const ChainModes& modes, double damping, size_t struck, double time) {
  std::vector<double> accelerations(modes.shapes.size());
  for (size_t k = 0; k < modes.shapes.size(); ++k) {
    // This is the second derivative of the displacement, exp(-d t) sin(w t) / w.
    const double d = damping * modes.frequencies[k],
                 w = modes.frequencies[k] * std::sqrt(1 - damping * damping);
    const double a = std::exp(-d * time) *
                     ((d * d - w * w) / w * std::sin(w * time) - 2 * d * std::cos(w * time));
    for (size_t m = 0; m < accelerations.size(); ++m)
      accelerations[m] += modes.shapes[k][struck] * modes.shapes[k][m] * a;
  }
  return accelerations;
}

Vibration generate_vibration(const VibrationSpec& spec, int64_t index) {
  check_vibration(spec);
  Rng rng(spec.seed, Purpose::generate, static_cast<uint64_t>(index));
  const auto n = static_cast<size_t>(spec.masses);
  Vibration made;
  made.weak = static_cast<uint8_t>(rng.below(static_cast<uint32_t>(n + 1)));
  const double lost = evenly(rng, kLeastLoss, kMostLoss),
               damping = evenly(rng, kLeastDamping, kMostDamping), warmth = evenly(rng, 0.95, 1.05);
  std::vector<double> masses, springs;
  for (size_t i = 0; i < n; ++i) {
    masses.push_back(evenly(rng, 0.98, 1.02));
    springs.push_back(warmth * evenly(rng, 0.98, 1.02) * (i + 1 == made.weak ? 1 - lost : 1));
  }
  made.parameters = {from_minus_one_to_one(made.weak > 0 ? lost : 0, 0, kMostLoss),
                     from_minus_one_to_one(damping, kLeastDamping, kMostDamping)};

  const ChainModes modes = chain_modes(masses, springs);
  const size_t struck = rng.below(static_cast<uint32_t>(n));
  const double blow = evenly(rng, 0, static_cast<double>(spec.samples) / 16);
  const int64_t pieces = spec.samples / kVibrationPiece;
  const int64_t recorded = pieces / 2 + rng.below(static_cast<uint32_t>(pieces - pieces / 2 + 1));
  made.padding.assign(static_cast<size_t>(pieces), -1);
  std::fill_n(made.padding.begin(), recorded, int8_t{0});
  made.clean.assign(static_cast<size_t>(spec.samples) * n, 0.0f);
  const int64_t end = recorded * kVibrationPiece;
  for (int64_t t = 0; t < end; ++t) {
    const double since = static_cast<double>(t) - blow;
    if (since < 0) continue;
    const std::vector<double> a = ringing(modes, damping, struck, since);
    for (size_t m = 0; m < n; ++m)
      made.clean[static_cast<size_t>(t) * n + m] = static_cast<float>(a[m]);
  }
  float most = 0;
  for (const float x : made.clean) most = std::max(most, std::abs(x));
  for (float& x : made.clean) x /= most;
  made.signals = made.clean;
  for (size_t i = 0; i < static_cast<size_t>(end) * n; ++i)
    made.signals[i] += static_cast<float>(spec.noise) * rng.normal();
  return made;
}

}  // namespace tutti::generate
