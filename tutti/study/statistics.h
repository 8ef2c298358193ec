#pragma once
// The few statistics that a report of repeated runs needs. NaN means unknown (no values, or one
// where two are needed).

#include <limits>
#include <vector>

namespace tutti::study {

double median(std::vector<double> values);

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Mean and spread of one quantity over repeats.
struct Spread {
  int count = 0;
  double mean = kUnknown, low = kUnknown, high = kUnknown;  ///< arithmetic mean, smallest, largest
  double stdev = kUnknown;       ///< sample standard deviation (count - 1)
  double half_width = kUnknown;  ///< half of the two-sided 90 % t interval of the mean
};
Spread spread(const std::vector<double>& values);

/// Returns the 0.95 quantile of Student's t, for two-sided 90 % intervals. A fractional number of
/// degrees is rounded down, which widens them.
double t_quantile_95(double degrees_of_freedom);

/// A ratio of two means with the 90 % interval of Welch's t on the logarithms (delta method: var ln
/// m = s^2 / (count m^2)).
struct Ratio {
  double value = kUnknown, low = kUnknown, high = kUnknown;
};
Ratio ratio_of_means(const Spread& above, const Spread& below);

}  // namespace tutti::study
