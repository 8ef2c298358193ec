#pragma once
// Metrics of a language model's prediction of a text: loss, perplexity or bits per token, and the
// rate at which its first choice is right. Private to metrics.cpp.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/train/metrics/metrics.h"

namespace tutti::train {

/// Computes from y [2, positions], which holds -log p of the target's tokens, and whether they are
/// the most likely. A mean over the tokens of all samples.
class TokenMean : public Metric {
 public:
  TokenMean(std::string_view name, int64_t channel) : name_(name), channel_(channel) {}
  std::string_view name() const override { return name_; }
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    const int64_t positions = target.sample.elements();
    CHECK(prediction.sample[0] > channel_, "a prediction {} of tokens",
          prediction.sample.to_string());
    double sum = 0;
    for (int64_t p = 0; p < positions; ++p)
      if (target.classes(i)[p] >= 0) sum += prediction.numbers(i)[channel_ * positions + p];
    const double tokens = tokens_of(target, i);
    return tokens > 0 ? sum / tokens : 0;
  }
  double weight_of_sample(const SampleTensor& /*prediction*/, const SampleTensor& target,
                          int64_t i) const override {
    return tokens_of(target, i) / static_cast<double>(target.sample.elements());
  }

 private:
  static double tokens_of(const SampleTensor& target, int64_t i) {
    const int32_t* const tokens = target.classes(i);
    return static_cast<double>(std::count_if(tokens, tokens + target.sample.elements(),
                                             [](int32_t token) { return token >= 0; }));
  }
  std::string_view name_;
  int64_t channel_;
};

/// The fraction of tokens that are the most likely.
class TokenAccuracy final : public TokenMean {
 public:
  TokenAccuracy() : TokenMean("accuracy", 1) {}
  bool higher_is_better() const override { return true; }
  bool is_fraction() const override { return true; }
};

class Surprise final : public TokenMean {
 public:
  enum class Unit : uint8_t { nats, perplexity, bits };
  Surprise(std::string_view name, Unit unit, float scale)
      : TokenMean(name, 0), unit_(unit), scale_(scale) {}
  bool higher_is_better() const override { return false; }
  double of_mean(double mean) const override {
    switch (unit_) {
      case Unit::nats: return scale_ * mean;
      case Unit::perplexity: return std::exp(mean);
      case Unit::bits: return mean / std::numbers::ln2;
    }
    return mean;
  }

 private:
  Unit unit_;
  double scale_;
};

/// Bits per byte of the text that the tokens represent: the sum of -log p divided by the sum of
/// bytes, so that tokenizers can be compared. A document's end token represents no byte, and its
/// bits count with its sample's; a sample without bytes does not count.
class BitsPerByte final : public Metric {
 public:
  /// `bytes` has each token's number of bytes; empty where only the name matters.
  explicit BitsPerByte(std::vector<int32_t> bytes) : bytes_(std::move(bytes)) {}
  std::string_view name() const override { return "bits_per_byte"; }
  bool higher_is_better() const override { return false; }
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    double sum = 0;
    for (int64_t p = 0; p < target.sample.elements(); ++p)
      if (target.classes(i)[p] >= 0) sum += prediction.numbers(i)[p];
    const double bytes = bytes_of(target, i);
    return bytes > 0 ? sum / bytes : 0;
  }
  double weight_of_sample(const SampleTensor& /*prediction*/, const SampleTensor& target,
                          int64_t i) const override {
    return bytes_of(target, i) / static_cast<double>(target.sample.elements());
  }
  double of_mean(double mean) const override { return mean / std::numbers::ln2; }

 private:
  double bytes_of(const SampleTensor& target, int64_t i) const {
    int64_t bytes = 0;
    for (int64_t p = 0; p < target.sample.elements(); ++p)
      if (const auto token = static_cast<size_t>(target.classes(i)[p]); token < bytes_.size())
        bytes += bytes_[token];
    return static_cast<double>(bytes);
  }

  std::vector<int32_t> bytes_;
};

}  // namespace tutti::train
