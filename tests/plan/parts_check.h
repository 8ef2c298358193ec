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

  int ranks() const;
  std::string text() const;
};

/// The options of every plan here.
PlanOptions parts_options();
/// Loss (to 1e-5) and gradients (each to `gradients`, relative) of the parts add up to those of the
/// replicas' serial steps. Failures are Google Test's.
void expect_serial(const Parts& parts, double gradients);
void expect_same_bits(const Parts& parts);

}  // namespace tutti::test
