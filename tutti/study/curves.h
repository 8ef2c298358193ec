#pragma once
// Combines the repeats of one rank count: median curves, and which ranks came late.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"

namespace tutti::study {

/// Returns the metric on the test set at every number of epochs at which all of `runs` were
/// evaluated. It ends with the run that ends first, because beyond that only slowly learning runs
/// would be left.
std::vector<CurvePoint> quality_curve(const Runs& runs, const std::string& metric);

/// Returns the mean training loss of every epoch that all of `runs` have.
std::vector<CurvePoint> loss_curve(const Runs& runs);

Lateness arrivals_of(const Runs& runs);

}  // namespace tutti::study
