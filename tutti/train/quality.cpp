#include <cmath>

#include "tutti/base/error.h"
#include "tutti/train/metrics.h"

namespace tutti {
namespace {

constexpr double kUnits = 0x1p24;  // of a sample's number

double rounded(double x) { return std::nearbyint(x * kUnits) / kUnits; }

}  // namespace

void Quality::settle() {
  size_t order = 0;
  for (size_t m = 0; m < metrics_.size(); ++m) {
    if (!metrics_[m]->of_order()) continue;
    sums_[m] = bins_.empty()
                   ? area_under_curve(std::move(scores_[order][0]), std::move(scores_[order][1]))
                   : bins_[order].area();
    ++order;
    sums_[metrics_.size() + m] = 1;
  }
}

void Quality::add(std::span<const Judged> outputs, int64_t i) {
  size_t order = 0;
  for (size_t m = 0; m < metrics_.size(); ++m) {
    const Judged& judged = outputs[metrics_[m]->output()];
    const double value = metrics_[m]->of_sample(judged.prediction, judged.target, i);
    const double weight = metrics_[m]->weight_of_sample(judged.target, i);
    if (metrics_[m]->of_order()) {
      if (bins_.empty())
        scores_[order][weight > 0].push_back(static_cast<float>(value));
      else
        bins_[order].add(static_cast<float>(value), weight > 0);
      ++order;
      continue;
    }
    sums_[m] += rounded(weight * value);
    sums_[metrics_.size() + m] += rounded(weight);
  }
  sums_.back() += 1;
}

double Quality::value(std::string_view metric) const {
  for (size_t m = 0; m < metrics_.size(); ++m)
    if (metrics_[m]->name() == metric) return value(m);
  CHECK(false, "metric {}", metric);
}

}  // namespace tutti
