#pragma once
// Metrics of how well logits separate zeros from ones. Private to metrics.cpp.

#include <cstdint>
#include <string_view>

#include "tutti/train/metrics/metrics.h"

namespace tutti::train {

/// A metric between 0 and 1; higher is better.
class Share : public Metric {
 public:
  explicit Share(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  bool higher_is_better() const override { return true; }
  bool is_fraction() const override { return true; }

 private:
  std::string_view name_;
};

/// Counts for logits of zeros and ones: a logit above 0 predicts a one. NaN predicts neither.
struct Found {
  int64_t right = 0, ones = 0, found = 0, both = 0;

  Found(const SampleTensor& prediction, const SampleTensor& target, int64_t i) {
    for (int64_t e = 0; e < prediction.sample.elements(); ++e) {
      const float y = prediction.numbers(i)[e];
      const bool one = target.numbers(i)[e] >= 0.5f;
      ones += one;
      found += y > 0;
      both += one && y > 0;
      right += one ? y > 0 : y <= 0;
    }
  }
};

/// Computes both / (finds, ones, or their sum) as a ratio of sums over all samples, not as a
/// mean of ratios.
class OfFound final : public Share {
 public:
  enum class Kind : uint8_t { f1, precision, recall };
  OfFound(std::string_view name, Kind kind) : Share(name), kind_(kind) {}
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    const Found f(prediction, target, i);
    const int64_t of = counted(f);
    return of == 0 ? 0
                   : static_cast<double>(kind_ == Kind::f1 ? 2 * f.both : f.both) /
                         static_cast<double>(of);
  }
  double weight_of_sample(const SampleTensor& prediction, const SampleTensor& target,
                          int64_t i) const override {
    return static_cast<double>(counted(Found(prediction, target, i)));
  }
  double without_weights() const override { return 0; }

 private:
  int64_t counted(const Found& f) const {
    return kind_ == Kind::precision ? f.found : kind_ == Kind::recall ? f.ones : f.ones + f.found;
  }
  Kind kind_;
};

class RightSide final : public Share {
 public:
  RightSide() : Share("accuracy") {}
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    return static_cast<double>(Found(prediction, target, i).right) /
           static_cast<double>(prediction.sample.elements());
  }
};

class UnderCurve final : public Share {
 public:
  UnderCurve() : Share("auc") {}
  bool of_order() const override { return true; }
  double of_sample(const SampleTensor& prediction, const SampleTensor& /*target*/,
                   int64_t i) const override {
    return static_cast<double>(*prediction.numbers(i));
  }
  double weight_of_sample(const SampleTensor& /*prediction*/, const SampleTensor& target,
                          int64_t i) const override {
    return *target.numbers(i) >= 0.5f ? 1 : 0;
  }
};

}  // namespace tutti::train
