#pragma once
// Checks that ranks that share samples compute the same as one rank, and the same bits each time: a
// network of science_step.h, with threads as ranks.

#include <string>
#include <vector>

#include "tests/plan/science_step.h"

namespace tutti::test {

struct Parts {
  std::string network;
  std::vector<int64_t> spatial;
  int replicas = 1;   ///< each with samples of its own
  int64_t slabs = 2;  ///< slabs of a part; 0: as the step needs
  int64_t batch = 2;
  std::string layout = "last";  ///< layout of activations
  Rectifiers rectifiers = Rectifiers::relu;
  std::vector<ScienceStep> held = {};  ///< steps whose ReLUs decide, one for each replica

  int ranks() const;
  std::string text() const;
};

/// Returns the options of every plan here. Channels last has direct convolutions for every
/// instruction set; in blocks of 16 channels a machine without AVX-512 has only reference loops.
plan::PlanOptions parts_options(const std::string& layout = "last");

/// Returns the step of each replica on one rank, which shares nothing but may cut its samples into
/// slabs.
std::vector<ScienceStep> serial_steps(const Parts& parts, int64_t slabs = 1);
/// Returns the step of each rank.
std::vector<ScienceStep> part_steps(const Parts& parts);

/// Whether a gradient is only rounding, being zero in exact arithmetic: its norm is below 1e-6.
bool is_zero(std::span<const float> gradient);

/// The differences between the parts and the serial steps.
struct PartsDistance {
  double out = 0, loss = 0, gradient = 0, model = 0;  ///< in the 2-norm, relative, the largest over
                                                      ///< tensors; the loss's is absolute
  std::string farthest;                               ///< name of the gradient that differs most
  std::vector<std::string> zero = {};  ///< gradients that are zero in the serial steps
};

/// Expects that loss (to 1e-5) and gradients (each to `gradients`, relative) of the parts add up to
/// those of the serial steps, of which there may be more than replicas. A gradient that is zero
/// there must be zero here, and enters no distance. Reports failures to Google Test.
PartsDistance expect_serial(const Parts& parts, const std::vector<ScienceStep>& got,
                            const std::vector<ScienceStep>& serial, double gradients);
PartsDistance expect_serial(const Parts& parts, double gradients);
/// Expects the same bits. Also returns whether they are the same.
bool expect_same_bits(const Parts& parts, const std::vector<ScienceStep>& once,
                      const std::vector<ScienceStep>& again);

/// Counts where ReLUs (Rectifiers::seen) decide differently from the serial steps.
struct Flips {
  int64_t count = 0, of = 0;
  float largest = 0;  ///< largest result at such a position, where the other result is 0
};
Flips flips(const Parts& parts, const std::vector<ScienceStep>& got,
            const std::vector<ScienceStep>& serial);

}  // namespace tutti::test
