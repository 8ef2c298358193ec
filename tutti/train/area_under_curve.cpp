#include "tutti/train/area_under_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tutti {

double area_under_curve(std::vector<float> zeros, std::vector<float> ones) {
  const auto bad = [](float x) { return std::isnan(x); };
  if (zeros.empty() || ones.empty() || std::ranges::any_of(zeros, bad) ||
      std::ranges::any_of(ones, bad))
    return std::nan("");
  std::ranges::sort(zeros);
  std::ranges::sort(ones);
  uint64_t halves = 0;  // two for each pair in the right order, one for an equal pair
  size_t below = 0, not_above = 0;
  for (const float one : ones) {
    while (below < zeros.size() && zeros[below] < one) ++below;
    while (not_above < zeros.size() && zeros[not_above] <= one) ++not_above;
    halves += below + not_above;
  }
  return static_cast<double>(halves) /
         (2 * static_cast<double>(zeros.size()) * static_cast<double>(ones.size()));
}

}  // namespace tutti
