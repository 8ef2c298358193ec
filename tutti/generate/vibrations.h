#pragma once
// Vibrations of a structure that was struck, as accelerometers record them: which part of it has
// become weak, and by how much. A chain of masses stands on the ground, each joined to the next by
// a spring,
//
//   ground -k1- m1 -k2- m2 -k3- ... -kn- mn       m a + c v + k x = blow
//
// as the storeys of a building are in shear. In n records of n + 1 one spring has lost part of its
// stiffness; warmth changes all springs alike, masses and springs differ a little from each other,
// and damping is a share of the critical one in all modes. A blow on one mass sets it ringing: a
// sum of damped modes, exactly, of which each sensor adds white noise. What is not modelled:
// bending and twisting, nonlinear joints, the hammer's own length of touch, drift of the sensors.
//
// Units: the nominal mass and spring are 1, a sample each unit of time, so that the highest mode is
// below the greatest frequency that samples can show.

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::data {

/// Index of the first record of a validation set.
inline constexpr int64_t kFirstTestVibration = int64_t{1} << 40;
/// Records end at multiples of so many samples.
inline constexpr int64_t kVibrationPiece = 8;
inline constexpr double kLeastLoss = 0.15, kMostLoss = 0.5;          ///< of a weak spring
inline constexpr double kLeastDamping = 0.005, kMostDamping = 0.03;  ///< of the critical one

struct VibrationSpec {
  uint64_t seed = 1;
  int64_t masses = 6;
  int64_t samples = 256;  ///< a multiple of kVibrationPiece; records have half of them or more
  double noise = 0.05;    ///< standard deviation, of the largest acceleration of the record
};

struct Vibration {
  /// [samples, masses]: as recorded, and without noise; the largest of `clean` is 1. 0 behind the
  /// record's end.
  std::vector<float> signals, clean;
  std::vector<int8_t> padding;  ///< [samples / kVibrationPiece]: 0, -1 behind the record's end
  uint8_t weak = 0;             ///< 0: no spring, i: k_i
  std::array<float, 2> parameters{};  ///< stiffness lost and damping, from -1 to 1 between no loss
                                      ///< and kMostLoss, kLeastDamping and kMostDamping
};

/// Of masses in a chain: angular frequencies, rising, and shapes [mode][mass] with the sum of m
/// times their squares 1.
struct ChainModes {
  std::vector<double> frequencies;
  std::vector<std::vector<double>> shapes;
};
/// springs[i] joins mass i with the one before it, springs[0] with the ground.
ChainModes chain_modes(const std::vector<double>& masses, const std::vector<double>& springs);
/// Acceleration of each mass `time` after an impulse of 1 on the mass `struck`.
std::vector<double> ringing(const ChainModes& modes, double damping, size_t struck, double time);

/// A pure function of both. ConfigError for sizes that are none.
Vibration generate_vibration(const VibrationSpec& spec, int64_t index);

}  // namespace tutti::data
