#include "tutti/train/settings/planning_rules.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::train {

double planned_speedup(const StepCost& cost, double workers) {
  const double ratio = cost.overhead_ratio();
  return workers * (1 + ratio) / (1 + workers * ratio);
}

std::optional<int64_t> workers_for_efficiency(const StepCost& cost, double efficiency) {
  CHECK(efficiency > 0 && efficiency <= 1, "an efficiency of {}", efficiency);
  const double ratio = cost.overhead_ratio();
  if (ratio <= 0) return std::nullopt;
  const double workers = ((1 + ratio) / efficiency - 1) / ratio;
  if (workers >= 1e15) return std::nullopt;
  // Numbers that are whole up to rounding count as whole.
  return std::max<int64_t>(1, static_cast<int64_t>(std::floor(workers * (1 + 1e-12))));
}

int64_t servers_to_hide(double weight_bytes, int64_t workers, double seconds_per_byte,
                        double compute) {
  const double busy = 2 * weight_bytes * static_cast<double>(workers) * seconds_per_byte;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(busy / compute * (1 - 1e-12))));
}

}  // namespace tutti::train
