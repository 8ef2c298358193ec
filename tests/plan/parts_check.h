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

  int ranks() const;
  std::string text() const;
};

/// The options of every plan here. Channels last has direct convolutions for every instruction set;
/// in blocks of 16 channels a machine without AVX-512 has reference loops alone.
PlanOptions parts_options(const std::string& layout = "last");

/// Of `replicas` replicas, each on one rank that shares nothing.
std::vector<ScienceStep> serial_steps(const std::string& network, int64_t batch, int replicas,
                                      const std::string& layout = "last");
/// Of each rank.
std::vector<ScienceStep> part_steps(const Parts& parts);

/// How far the parts are from the serial steps.
struct PartsDistance {
  double out = 0, loss = 0, gradient = 0, model = 0;  ///< relative in the 2-norm, the largest of a
                                                      ///< tensor; of the loss absolute
  std::string farthest;                               ///< the name of that gradient
};

/// Loss (to 1e-5) and gradients (each to `gradients`, relative) of the parts add up to those of the
/// serial steps, of which there may be more than replicas. Failures are Google Test's.
PartsDistance expect_serial(const Parts& parts, const std::vector<ScienceStep>& got,
                            const std::vector<ScienceStep>& serial, double gradients);
void expect_serial(const Parts& parts, double gradients);
/// Also returns whether they are.
bool expect_same_bits(const Parts& parts, const std::vector<ScienceStep>& once,
                      const std::vector<ScienceStep>& again);

}  // namespace tutti::test
