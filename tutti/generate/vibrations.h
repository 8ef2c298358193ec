#pragma once
// Generates vibrations of a struck structure, as accelerometers record them: a model is to find
// which part has become weak, and by how much. A chain of masses stands on the ground, each joined
// to the next by a spring,
//
//   ground -k1- m1 -k2- m2 -k3- ... -kn- mn       m a + c v + k x = blow
//
// like the storeys of a building in shear. In n of n + 1 records, one spring has lost part of its
// stiffness; temperature changes all springs by the same factor, masses and springs differ
// slightly, and damping is the same share of the critical one in all modes. A blow on one mass
// excites an exact sum of damped modes, to which each sensor adds white noise. The model leaves out
// bending and twisting, nonlinear joints, the hammer's contact time, and sensor drift.
//
// Units: the nominal mass and spring are 1; there is a sample per unit of time, so that the highest
// mode is below the Nyquist frequency.

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::generate {

/// Index of the first record of a validation set.
inline constexpr int64_t kFirstTestVibration = int64_t{1} << 40;
/// The length of a record is a multiple of this.
inline constexpr int64_t kVibrationPiece = 8;
inline constexpr double kLeastLoss = 0.15, kMostLoss = 0.5;          ///< share of stiffness lost
inline constexpr double kLeastDamping = 0.005, kMostDamping = 0.03;  ///< share of the critical one

struct VibrationSpec {
  uint64_t seed = 1;
  int64_t masses = 6;
  int64_t samples = 256;  ///< a multiple of kVibrationPiece; records have at least half
  double noise = 0.05;    ///< standard deviation, relative to the record's largest acceleration
};

struct Vibration {
  /// [samples, masses]: as recorded, and without noise; the maximum of `clean` is 1. 0 after the
  /// record's end.
  std::vector<float> signals, clean;
  std::vector<int8_t> padding;        ///< [samples / kVibrationPiece]: 0, or -1 after the end
  uint8_t weak = 0;                   ///< 0: no spring, i: k_i
  std::array<float, 2> parameters{};  ///< stiffness lost and damping, mapped to [-1, 1] from [0,
                                      ///< kMostLoss] and [kLeastDamping, kMostDamping]
};

/// The modes of a chain: rising angular frequencies, and shapes [mode][mass], scaled so that the
/// sum of m times their squares is 1.
struct ChainModes {
  std::vector<double> frequencies;
  std::vector<std::vector<double>> shapes;
};
/// Computes the modes. springs[i] joins mass i to the previous one, springs[0] to the ground.
ChainModes chain_modes(const std::vector<double>& masses, const std::vector<double>& springs);
/// Returns the acceleration of each mass at `time` after a unit impulse on the mass `struck`.
std::vector<double> ringing(const ChainModes& modes, double damping, size_t struck, double time);

/// Generates a record: a pure function of both arguments. ConfigError for invalid sizes.
Vibration generate_vibration(const VibrationSpec& spec, int64_t index);

}  // namespace tutti::generate
