#include "tutti/train/metrics.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti {
namespace {

constexpr double kUnits = 0x1p24;  // of a sample's cross entropy

/// log(sum exp(x)) - x[label], without overflow.
double cross_entropy(std::span<const float> x, size_t label) {
  const double largest = *std::ranges::max_element(x);
  double sum = 0;
  for (const double v : x) sum += std::exp(v - largest);
  return std::log(sum) + (largest - static_cast<double>(x[label]));
}

}  // namespace

ClassifierQuality classifier_quality(std::span<const float> logits, std::span<const int32_t> labels,
                                     int64_t classes) {
  CHECK(classes >= 1 && logits.size() >= labels.size() * static_cast<size_t>(classes),
        "{} logits for {} samples of {} classes", logits.size(), labels.size(), classes);
  ClassifierQuality quality;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto row = logits.subspan(i * static_cast<size_t>(classes), static_cast<size_t>(classes));
    if (labels[i] < 0 || labels[i] >= classes)
      throw ConfigError(
          fmt::format("sample {} of the batch has label {}, the model has classes 0 to {}", i,
                      labels[i], classes - 1));
    const auto label = static_cast<size_t>(labels[i]);
    const bool finite = std::ranges::none_of(row, [](float v) { return std::isnan(v); });
    quality.samples += 1;
    quality.correct +=
        finite && static_cast<size_t>(std::ranges::max_element(row) - row.begin()) == label;
    quality.cross_entropy += std::nearbyint(cross_entropy(row, label) * kUnits) / kUnits;
  }
  return quality;
}

}  // namespace tutti
