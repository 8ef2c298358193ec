#pragma once
// Finds steps whose kernels are slow: oneDNN's reference loops, the oracle's, or in a plan for a
// device the host's.

#include <string>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the arithmetic of a step, once over the batch.
double flop_of(const Plan& plan, const Step& step);

/// Whether the step of a plan for a device runs on the host.
bool runs_on_host(const Step& step);

/// Returns a sentence about these steps that names all their ops, without its full stop; empty if
/// there are none.
std::string host_steps_text(const Plan& plan);

/// Returns the slow steps, but for those on the host, with at least a thousandth of the plan's
/// arithmetic, in its order; the others do not matter. The pointers are into the plan.
std::vector<const Step*> slow_steps(const Plan& plan);

/// Returns a sentence about them that names the first few, without its full stop; empty if there
/// are none.
std::string slow_steps_text(const Plan& plan);

}  // namespace tutti::plan
