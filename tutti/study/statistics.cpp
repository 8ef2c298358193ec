#include "tutti/study/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace tutti::study {
namespace {

// Student's t, one-sided 0.95, for 1 to 30 degrees of freedom.
constexpr std::array<double, 30> kT95 = {
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125,
    1.7959, 1.7823, 1.7709, 1.7613, 1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247,
    1.7207, 1.7171, 1.7139, 1.7109, 1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return kUnknown;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double t_quantile_95(double degrees_of_freedom) {
  if (!(degrees_of_freedom >= 1)) return kUnknown;
  if (degrees_of_freedom < 31) return kT95[static_cast<size_t>(degrees_of_freedom) - 1];
  // First term of the Cornish-Fisher expansion around the normal quantile z: z + (z^3 + z) / (4
  // nu).
  constexpr double z = 1.6448536;
  return z + (z * z * z + z) / (4 * degrees_of_freedom);
}

Spread spread(const std::vector<double>& values) {
  Spread s;
  s.count = static_cast<int>(values.size());
  if (values.empty()) return s;
  s.mean = std::accumulate(values.begin(), values.end(), 0.0) / s.count;
  s.low = *std::ranges::min_element(values);
  s.high = *std::ranges::max_element(values);
  if (s.count < 2) return s;
  double squares = 0;
  for (const double value : values) squares += (value - s.mean) * (value - s.mean);
  s.stdev = std::sqrt(squares / (s.count - 1));
  s.half_width = t_quantile_95(s.count - 1) * s.stdev / std::sqrt(s.count);
  return s;
}

Ratio ratio_of_means(const Spread& above, const Spread& below) {
  const double value = above.mean / below.mean;
  if (above.count < 2 || below.count < 2 || !(value > 0)) return {value, kUnknown, kUnknown};
  const auto variance = [](const Spread& s) {
    return s.stdev * s.stdev / (s.count * s.mean * s.mean);
  };
  const double a = variance(above), b = variance(below);
  if (a + b == 0) return {value, value, value};
  const double degrees =
      (a + b) * (a + b) / (a * a / (above.count - 1) + b * b / (below.count - 1));
  const double factor = std::exp(t_quantile_95(std::max(degrees, 1.0)) * std::sqrt(a + b));
  return {value, value / factor, value * factor};
}

}  // namespace tutti::study
