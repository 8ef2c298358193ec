#pragma once
// Steps whose kernels are loops that are fast for nothing: oneDNN's reference, or the oracle's.

#include <string>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti {

/// The arithmetic of a step, once over the batch.
double flop_of(const Plan& plan, const Step& step);

/// Those with at least a thousandth of the plan's arithmetic, in its order: the others may take
/// their time. The pointers are into the plan.
std::vector<const Step*> slow_steps(const Plan& plan);

/// A sentence about them that names the first few, without its full stop; empty where there are
/// none.
std::string slow_steps_text(const Plan& plan);

}  // namespace tutti
