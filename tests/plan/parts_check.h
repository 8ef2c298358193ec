#pragma once
// Ranks that share samples compute what one rank does, and the same bits each time: checks of a
// network of science_step.h on threads as ranks.

#include <string>
#include <vector>

#include "tests/plan/science_step.h"

namespace tutti::test {

struct Parts {
  std::string network;
  std::vector<int64_t> spatial;
  int replicas = 1;   ///< each with samples of its own
  int64_t slabs = 2;  ///< of a part; 0: as the step needs
  int64_t batch = 2;
  std::string layout = "last";  ///< of activations
  Rectifiers rectifiers = Rectifiers::relu;
  std::vector<ScienceStep> held = {};  ///< of each replica, whose ReLUs decide

  int ranks() const;
  std::string text() const;
};

/// The options of every plan here. Channels last has direct convolutions for every instruction set;
/// in blocks of 16 channels a machine without AVX-512 has reference loops alone.
PlanOptions parts_options(const std::string& layout = "last");

/// Of each replica, on one rank that shares nothing but may cut its samples into slabs.
std::vector<ScienceStep> serial_steps(const Parts& parts, int64_t slabs = 1);
/// Of each rank.
std::vector<ScienceStep> part_steps(const Parts& parts);

/// Whether a gradient is nothing but rounding, being zero in exact arithmetic: its norm is below
/// 1e-6.
bool is_zero(std::span<const float> gradient);

/// How far the parts are from the serial steps.
struct PartsDistance {
  double out = 0, loss = 0, gradient = 0, model = 0;  ///< relative in the 2-norm, the largest of a
                                                      ///< tensor; of the loss absolute
  std::string farthest;                               ///< the name of that gradient
  std::vector<std::string> zero = {};  ///< gradients that are zero in the serial steps
};

/// Loss (to 1e-5) and gradients (each to `gradients`, relative) of the parts add up to those of the
/// serial steps, of which there may be more than replicas. A gradient that is zero there is so
/// here, and counts in no distance. Failures are Google Test's.
PartsDistance expect_serial(const Parts& parts, const std::vector<ScienceStep>& got,
                            const std::vector<ScienceStep>& serial, double gradients);
PartsDistance expect_serial(const Parts& parts, double gradients);
/// Also returns whether they are.
bool expect_same_bits(const Parts& parts, const std::vector<ScienceStep>& once,
                      const std::vector<ScienceStep>& again);

/// Where ReLUs (Rectifiers::seen) decide otherwise than those of the serial steps.
struct Flips {
  int64_t count = 0, of = 0;
  float largest = 0;  ///< result at such a position; the other one is 0
};
Flips flips(const Parts& parts, const std::vector<ScienceStep>& got,
            const std::vector<ScienceStep>& serial);

}  // namespace tutti::test
