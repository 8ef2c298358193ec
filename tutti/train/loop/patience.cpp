#include "tutti/train/loop/patience.h"

#include <fmt/format.h>

#include <cmath>

namespace tutti::train {

void Patience::add(double value) {
  const double gain = metric_->higher_is_better() ? value - best_ : best_ - value;
  if (std::isfinite(value) && (!any_ || gain > min_improvement_)) {
    any_ = true;
    best_ = value;
    waited_ = 0;
  } else {
    ++waited_;
  }
}

std::string Patience::key(const std::string& name, const char* what) const {
  return fmt::format("{}.{}.{}", name, metric_->name(), what);
}

void Patience::save(const std::string& name, std::map<std::string, double>& metrics) const {
  metrics[key(name, "waited")] = static_cast<double>(waited_);
  if (any_) metrics[key(name, "best")] = best_;
}

void Patience::restore(const std::string& name, const std::map<std::string, double>& metrics) {
  const auto waited = metrics.find(key(name, "waited")), best = metrics.find(key(name, "best"));
  waited_ = waited == metrics.end() ? 0 : static_cast<int64_t>(waited->second);
  any_ = best != metrics.end();
  if (any_) best_ = best->second;
}

}  // namespace tutti::train
