#pragma once
// Repeats of one rank count drawn together: median curves, and who came late.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"

namespace tutti::study {

/// The metric on the test set at every number of epochs at which all of `runs` were evaluated. It
/// ends where the first of them ends: beyond, the runs that learn more slowly would be alone.
std::vector<CurvePoint> quality_curve(const Runs& runs, const std::string& metric);

/// The mean training loss of every epoch that all of `runs` have in common.
std::vector<CurvePoint> loss_curve(const Runs& runs);

Lateness arrivals_of(const Runs& runs);

}  // namespace tutti::study
