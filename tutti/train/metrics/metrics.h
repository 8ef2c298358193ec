#pragma once
// Metrics: measure the quality of predictions, exactly, on any number of ranks.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/block/model.h"
#include "tutti/train/metrics/area_under_curve.h"

namespace tutti::train {

/// A tensor on the host in the plain layout, one sample after the other: f32, or i32 for targets
/// that are class numbers.
struct SampleTensor {
  const void* data = nullptr;
  Shape sample{};  ///< shape of one sample

  const float* numbers(int64_t i) const {
    return static_cast<const float*>(data) + i * sample.elements();
  }
  const int32_t* classes(int64_t i) const {
    return static_cast<const int32_t*>(data) + i * sample.elements();
  }
};

/// A prediction and its target, in the data's units.
struct Judged {
  SampleTensor prediction, target;
  /// The values as the network learns them, where transforms change the unit; no data: the same.
  SampleTensor learned{}, learned_target{};
  /// In the data's units, minus the value of a learned zero, so that small differences between
  /// large numbers (days, energies) keep their digits. No data: the same as the first.
  SampleTensor shifted{}, shifted_target{};
};

/// A measure of predictions: a mean over samples, possibly weighted, and so a ratio of two sums
/// over all of them, or a measure of their order. Immutable; safe from any thread.
class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string_view name() const = 0;  ///< "accuracy", in record and configuration
  virtual bool higher_is_better() const = 0;
  /// Returns the value for an error too large for a number.
  double worst() const {
    const double infinity = std::numeric_limits<double>::infinity();
    return higher_is_better() ? -infinity : infinity;
  }
  virtual bool is_fraction() const { return false; }    ///< shown to people in percent
  virtual std::string_view unit() const { return {}; }  ///< "K"; empty: none, or unknown
  /// The predictions and targets that it uses: in the data's units; as the network learns them,
  /// like losses; or in the data's units where only differences count.
  enum class Takes { of_data, learned, differences };
  virtual Takes takes() const { return Takes::of_data; }
  virtual size_t output() const { return 0; }  ///< index of the model's prediction that it uses
  /// Returns the value for sample i. Quality rounds it to a multiple of 2^-79, and adds up
  /// multiples of four sizes, so that sums are exact and the same in any order. Throws ConfigError
  /// naming the sample for a class number that the prediction does not have.
  virtual double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                           int64_t i) const = 0;
  /// Returns the weight of of_sample() in the mean; rounded to a multiple of 2^-24. If the
  /// weights of all samples are 0, the metric is without_weights().
  virtual double weight_of_sample(const SampleTensor& /*prediction*/,
                                  const SampleTensor& /*target*/, int64_t /*i*/) const {
    return 1;
  }
  virtual double without_weights() const { return std::numeric_limits<double>::quiet_NaN(); }
  /// Returns the reported value, a function of the mean.
  virtual double of_mean(double mean) const { return mean; }
  /// Returns whether it is the mean over samples of the losses that the model itself defines;
  /// Quality::add_losses() then receives them instead of of_sample().
  virtual bool of_own_losses() const { return false; }
  /// Returns whether it depends on the order of all samples and is not a mean: of_sample() is then
  /// a sample's score, not rounded, and weight_of_sample() is 1 for a one and 0 for a zero.
  virtual bool of_order() const { return false; }
};

/// Adds a metric that objectives may name (Objective::metrics); call it at the start of a program,
/// before any other thread. Throws ConfigError for a name that exists.
void register_metric(std::shared_ptr<const Metric> metric);
/// Returns how many were added.
size_t registered_metrics();

/// Returns the metrics of a model, those for its first prediction first; among these, the first one
/// is the default goal for targets where the configuration names none. With several predictions
/// they are named NAME.METRIC. Each prediction has the metrics that its objective names, and
/// those of its task:
///   classify  accuracy: the largest output is the target's; of equal ones the first counts; never
///             where one is NaN
///             top5: the target's output is among the five largest (where there are more than five)
///   segment   iou: the mean over the classes of intersection / union, which is 1 for a class that
///             is in neither (MLPerf HPC's DeepCAM)
///             accuracy: the fraction of positions whose largest output is the target's
///   regress   mae: the mean of |y - t|, in the data's units (train/settings/units.h)
///             For logits of zeros and ones (the loss bce_with_logits) there are instead metrics
///             counted over all numbers of all samples; a target from 0.5 on is a one, and a logit
///             above 0 is a find. precision: both / finds; recall: both / ones;
///             f1: 2 both / (ones + finds); each 0 where it would be 0 / 0, as scikit-learn's
///             zero_division. accuracy: the fraction on the right side of 0. auc, where a sample
///             has one logit: the probability that a one has a greater logit than a zero, where
///             equal ones count half. auc is exact up to Quality::kMostScores samples: all logits
///             are kept, 4 bytes a sample on every rank; above that it uses bins (ScoreBins). NaN
///             without ones, without zeros, and for a NaN
///   language  loss: the mean of -log p over the tokens, with natural logarithms; perplexity: its
///             exponential; bits: bits per token; bits_per_byte: bits per byte of the text that
///             the tokens represent, if known (ModelField::class_bytes); accuracy: the share of
///             tokens that are the most likely at their position
///   others    loss: the task's, times the objective's weight, so that they add up to the loss in
///             training; with class weights as in training, without label smoothing, with natural
///             logarithms. Not where the model has losses of its own: then one loss, after all
///             other metrics, is the mean over samples of the sum of all the model's losses, for
///             each sample alone
std::vector<std::shared_ptr<const Metric>> metrics_of(const models::ModelSpec& model);
/// Returns the metric of this name. Throws ConfigError listing the task's metrics.
const Metric& find_metric(std::span<const std::shared_ptr<const Metric>> metrics,
                          std::string_view name);

/// Formats as "accuracy 91.20 %" or "mae 0.1187 K".
std::string to_text(const Metric& metric, double value);

/// Sums over samples, and scores where order counts. Batches' and ranks' sums can be added up.
class Quality {
 public:
  /// Scores are kept for at most this many samples; for more they are counted in bins.
  static constexpr int64_t kMostScores = 10'000'000;
  static constexpr size_t kSums = 4;  ///< per metric

  /// `samples`: approximately how many all ranks will add; it decides whether scores are kept.
  explicit Quality(std::span<const std::shared_ptr<const Metric>> metrics, int64_t samples = 0)
      : metrics_(metrics.begin(), metrics.end()), sums_((kSums + 1) * metrics.size() + 1) {
    for (const auto& metric : metrics_) {
      if (!metric->of_order()) continue;
      if (samples > kMostScores)
        bins_.emplace_back();
      else
        scores_.emplace_back();
    }
  }

  /// Adds sample i of a batch, with all predictions of the model.
  void add(std::span<const Judged> outputs, int64_t i);
  /// Adds a sample's sum of losses that the model itself defines; it is not counted as a further
  /// sample.
  void add_losses(double sum);

  /// Returns kSums sums for each metric, each metric's weights, then the number of samples; ranks
  /// add them up.
  std::span<double> sums() { return sums_; }
  /// For each metric of order: the scores of zeros and of ones, which ranks concatenate in any
  /// order.
  using Scores = std::array<std::vector<float>, 2>;
  std::vector<Scores>& scores() { return scores_; }
  /// Replaces scores where these are counted: one per metric; ranks add them up.
  std::vector<ScoreBins>& bins() { return bins_; }
  /// Returns whether no scores are counted in bins.
  bool exact() const { return bins_.empty(); }
  /// Judges the order of scores, after the last sample: value() needs it.
  void settle();
  int64_t samples() const { return static_cast<int64_t>(sums_.back()); }
  /// Returns the means; NaN without samples.
  double value(size_t metric) const;
  double value(std::string_view metric) const;
  /// Explains each metric that is 0 / 0 and counts as 0: "precision is 0 / 0 and counts as 0", and
  /// each that is worst(): "mae is infinite, which is never the best". Empty: there are none.
  std::string undefined() const;

 private:
  void add_to(size_t metric, double x, double weight);
  double& weight_of(size_t metric) { return sums_[kSums * metrics_.size() + metric]; }

  std::vector<std::shared_ptr<const Metric>> metrics_;
  std::vector<double> sums_;
  std::vector<Scores> scores_;
  std::vector<ScoreBins> bins_;
};

}  // namespace tutti::train
