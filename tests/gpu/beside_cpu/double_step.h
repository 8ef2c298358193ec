#pragma once
// The distance of a step that a machine has made from the same step in double precision.
//
// A network compares: a ReLU its argument with 0, a maximum the elements of a window. Where the
// argument is within rounding of 0, another order of summation takes the other branch, and
// gradients then change by far more than rounding. So the step in double precision takes the
// branches that the machine has taken. That they are right up to rounding is seen before: results
// of ReLUs count with their distance from those that double precision chooses, and the machine's
// results decide which element of a window is the largest.

#include "tests/gpu/beside_cpu/machine.h"

namespace tutti::test {

/// The distance of a tensor from the one in double precision, in the 2-norm, and the norm of that.
struct Distance {
  double apart = 0, size = 0;
};

using Distances = std::map<std::string, Distance>;

struct StepDistances {
  /// Its size counts the predictions' root mean square, too: a loss near 0 is a difference of
  /// numbers as large as they are.
  Distance loss;
  Distances compared;   ///< results that nodes compare
  Distances gradients;  ///< by parameter
  /// Parameters, statistics and optimizer state after an update with the machine's own gradients.
  /// Sizes count them before and after.
  Distances variables;
  int64_t branches = 0;  ///< elements at which double precision takes another branch
};

/// Makes the step in double precision, by the reference's rules, from the given variables.
StepDistances from_double(const train::TrainingGraph& training, const plan::Plan& plan,
                          const StepToMake& step, const Named& variables,
                          const std::vector<Numbers>& batch, const MadeStep& made);

}  // namespace tutti::test
