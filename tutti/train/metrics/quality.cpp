#include <cmath>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/train/metrics/metrics.h"

namespace tutti::train {
namespace {

constexpr double kWeightQuantum = 0x1p-24;
/// A sample's number is split into multiples of these: large, usual and small parts are each added
/// up exactly, whatever the data's unit.
constexpr std::array<double, Quality::kSums> kQuanta = {0x1p8, 0x1p-21, 0x1p-50, 0x1p-79};

double rounded(double x, double quantum) { return std::nearbyint(x / quantum) * quantum; }

}  // namespace

void Quality::add_to(size_t m, double x, double weight) {
  double* const sums = &sums_[kSums * m];
  for (size_t q = 0; q < kSums && std::isfinite(x); ++q) {
    const double part = rounded(x, kQuanta[q]);
    sums[q] += part;
    x -= part;
  }
  if (!std::isfinite(x)) sums[0] += x;
  weight_of(m) += rounded(weight, kWeightQuantum);
}

void Quality::settle() {
  size_t order = 0;
  for (size_t m = 0; m < metrics_.size(); ++m) {
    if (!metrics_[m]->of_order()) continue;
    sums_[kSums * m] =
        bins_.empty() ? area_under_curve(std::move(scores_[order][0]), std::move(scores_[order][1]))
                      : bins_[order].area();
    ++order;
    weight_of(m) = 1;
  }
}

namespace {

/// Returns the prediction and the target that a metric uses.
std::pair<SampleTensor, SampleTensor> taken_by(const Metric& metric, const Judged& judged) {
  if (metric.takes() == Metric::Takes::learned && judged.learned.data)
    return {judged.learned, judged.learned_target};
  if (metric.takes() == Metric::Takes::differences && judged.shifted.data)
    return {judged.shifted, judged.shifted_target};
  return {judged.prediction, judged.target};
}

}  // namespace

void Quality::add(std::span<const Judged> outputs, int64_t i) {
  size_t order = 0;
  for (size_t m = 0; m < metrics_.size(); ++m) {
    if (metrics_[m]->of_own_losses()) continue;
    const Judged& judged = outputs[metrics_[m]->output()];
    const auto [y, t] = taken_by(*metrics_[m], judged);
    const double value = metrics_[m]->of_sample(y, t, i);
    const double weight = metrics_[m]->weight_of_sample(y, t, i);
    if (!metrics_[m]->of_order()) {
      add_to(m, weight * value, weight);
    } else if (bins_.empty()) {
      scores_[order++][weight > 0].push_back(static_cast<float>(value));
    } else {
      bins_[order++].add(static_cast<float>(value), weight > 0);
    }
  }
  sums_.back() += 1;
}

void Quality::add_losses(double sum) {
  for (size_t m = 0; m < metrics_.size(); ++m)
    if (metrics_[m]->of_own_losses()) add_to(m, sum, 1);
}

double Quality::value(size_t metric) const {
  const double *const sums = &sums_[kSums * metric],
                      weight = sums_[kSums * metrics_.size() + metric];
  if (weight == 0 && samples() > 0) return metrics_[metric]->without_weights();
  return metrics_[metric]->of_mean((sums[0] + (sums[1] + (sums[2] + sums[3]))) / weight);
}

std::string Quality::undefined() const {
  std::string text;
  const auto add_word = [&](size_t m, const char* word) {
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", metrics_[m]->name(), word);
  };
  for (size_t m = 0; samples() > 0 && m < metrics_.size(); ++m)
    if (sums_[kSums * metrics_.size() + m] == 0 && metrics_[m]->without_weights() == 0)
      add_word(m, "0 / 0 and counts as 0");
    else if (value(m) == metrics_[m]->worst())
      add_word(m, "infinite, which is never the best");
  return text;
}

double Quality::value(std::string_view metric) const {
  for (size_t m = 0; m < metrics_.size(); ++m)
    if (metrics_[m]->name() == metric) return value(m);
  CHECK(false, "metric {}", metric);
}

}  // namespace tutti::train
