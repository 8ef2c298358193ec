#pragma once
// Metrics: how good predictions are, exactly, on any number of ranks.

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

namespace tutti {

/// A tensor of the host in the plain layout, one sample after the other: f32, or i32 of targets
/// that are class numbers.
struct SampleTensor {
  const void* data = nullptr;
  Shape sample{};  ///< of one sample

  const float* numbers(int64_t i) const {
    return static_cast<const float*>(data) + i * sample.elements();
  }
  const int32_t* classes(int64_t i) const {
    return static_cast<const int32_t*>(data) + i * sample.elements();
  }
};

/// A prediction and what it is compared with, in the units of the data.
struct Judged {
  SampleTensor prediction, target;
  /// As the network learns them, where transforms make another unit of it; no data: the same.
  SampleTensor learned{}, learned_target{};
  /// In the units of the data, but less what a learned zero stands for: differences of numbers that
  /// are large beside them (days, energies) keep their digits. No data: the same as the first.
  SampleTensor shifted{}, shifted_target{};
};

/// A measure of predictions: a mean over samples, perhaps a weighted one, so a ratio of two sums
/// over all of them, or one of their order. Immutable; safe from any thread.
class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string_view name() const = 0;  ///< "accuracy": in the record and the configuration
  virtual bool higher_is_better() const = 0;
  /// The value that an error too large for a number makes.
  double worst() const {
    const double infinity = std::numeric_limits<double>::infinity();
    return higher_is_better() ? -infinity : infinity;
  }
  virtual bool is_fraction() const { return false; }    ///< people read it in percent
  virtual std::string_view unit() const { return {}; }  ///< "K"; empty: none, or not known
  /// The predictions and targets that it takes: in the units of the data, as the network learns
  /// them, as losses do, or in the units of the data where only differences count.
  enum class Takes { of_data, learned, differences };
  virtual Takes takes() const { return Takes::of_data; }
  virtual size_t output() const { return 0; }  ///< of the model's predictions, the one it reads
  /// The value of sample i. Quality rounds it to a multiple of 2^-79, and adds up multiples of four
  /// sizes, so that sums are exact and the same in any order. Throws ConfigError naming the sample
  /// for a class number that the prediction does not have.
  virtual double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                           int64_t i) const = 0;
  /// How much of_sample() counts in the mean; rounded to a multiple of 2^-24. Where the weights of
  /// all samples are 0, the metric is without_weights().
  virtual double weight_of_sample(const SampleTensor& /*prediction*/,
                                  const SampleTensor& /*target*/, int64_t /*i*/) const {
    return 1;
  }
  virtual double without_weights() const { return std::numeric_limits<double>::quiet_NaN(); }
  /// What is said of the mean: a function of it.
  virtual double of_mean(double mean) const { return mean; }
  /// Whether it is the mean over samples of the losses that the model writes itself, which
  /// Quality::add_losses() gets instead of of_sample().
  virtual bool of_own_losses() const { return false; }
  /// Whether it is no mean but judges the order of all samples: of_sample() is then the score of
  /// one, not rounded, and weight_of_sample() is 1 for a one and 0 for a zero.
  virtual bool of_order() const { return false; }
};

/// Adds a metric that objectives may name (Objective::metrics), at the start of a program and
/// before any other thread. ConfigError for a name that there is.
void register_metric(std::shared_ptr<const Metric> metric);
/// How many were added.
size_t registered_metrics();

/// The metrics of a model, those of its first prediction first, and of these the one that targets
/// mean where the configuration names none. Of several predictions they are named NAME.METRIC. Each
/// prediction has those that its objective names, and those of its task:
///   classify  accuracy: the largest output is the target's; of equal ones the first counts; never
///             where one is NaN
///             top5: the target's output is among the five largest (where there are more than five)
///   segment   iou: the mean over the classes of intersection / union, which is 1 for a class that
///             is in neither (MLPerf HPC's DeepCAM)
///             accuracy: the part of the positions whose largest output is the target's
///   regress   mae: the mean of |y - t|, in the units of the data (train/settings/units.h)
///             instead of it, of logits of zeros and ones (the loss bce_with_logits), counted over
///             all numbers of all samples, a target from 0.5 on being a one and a logit above 0 a
///             find: precision: both / finds; recall: both / ones; f1: 2 both / (ones + finds);
///             each 0 where it would be 0 / 0, as scikit-learn's zero_division; accuracy: the part
///             on the right side of 0; where a sample has one logit, auc: the probability that a
///             one has a greater logit than a zero, where equal ones count half. Of up to
///             Quality::kMostScores samples exact: all logits are kept, 4 bytes a sample on every
///             rank; of more in bins (ScoreBins). NaN without ones, without zeros, and for a NaN
///   language  loss: the mean of -log p of the tokens, with natural logarithms; perplexity: exp of
///             it; bits: in bits a token; bits_per_byte: in bits a byte of the text that the
///             tokens stand for, where that is known (ModelField::class_bytes); accuracy: the part
///             of the tokens that are the likeliest where they stand
///   others    loss: the task's, times the objective's weight, so that they add up to what is
///             trained; with class weights as in training, without label smoothing, with natural
///             logarithms; not where the model has
///             losses of its own: then one loss, behind all others, is the mean over samples of the
///             sum of all losses of the model, each sample alone
std::vector<std::shared_ptr<const Metric>> metrics_of(const ModelSpec& model);
/// ConfigError listing the task's metrics.
const Metric& find_metric(std::span<const std::shared_ptr<const Metric>> metrics,
                          std::string_view name);

/// "accuracy 91.20 %", "mae 0.1187 K"
std::string to_text(const Metric& metric, double value);

/// Sums over samples, and scores where order is judged; those of batches and ranks add up.
class Quality {
 public:
  /// Scores of order are kept of as many samples; of more they are counted in bins.
  static constexpr int64_t kMostScores = 10'000'000;
  static constexpr size_t kSums = 4;  ///< of each metric

  /// `samples`: that all ranks will add, about; it says whether scores are kept.
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

  /// Sample i of a batch, all predictions of the model.
  void add(std::span<const Judged> outputs, int64_t i);
  /// A sample's sum of losses that the model writes itself, which is no further sample.
  void add_losses(double sum);

  /// kSums of each metric, the weights of each, then the number of samples: what ranks add up.
  std::span<double> sums() { return sums_; }
  /// Of each metric that judges order: the scores of the zeros and of the ones, which ranks put
  /// together in any order.
  using Scores = std::array<std::vector<float>, 2>;
  std::vector<Scores>& scores() { return scores_; }
  /// Instead of scores, where they are counted: one each, which ranks add up.
  std::vector<ScoreBins>& bins() { return bins_; }
  /// Whether no scores are counted in bins.
  bool exact() const { return bins_.empty(); }
  /// Judges their order, after the last sample: only then value() knows of it.
  void settle();
  int64_t samples() const { return static_cast<int64_t>(sums_.back()); }
  /// The means; NaN without samples.
  double value(size_t metric) const;
  double value(std::string_view metric) const;
  /// A word for each metric that is 0 / 0 and said to be 0: "precision is 0 / 0 and counts as 0",
  /// and for each that is worst(): "mae is infinite, which is never the best". Empty: none is.
  std::string undefined() const;

 private:
  void add_to(size_t metric, double x, double weight);
  double& weight_of(size_t metric) { return sums_[kSums * metrics_.size() + metric]; }

  std::vector<std::shared_ptr<const Metric>> metrics_;
  std::vector<double> sums_;
  std::vector<Scores> scores_;
  std::vector<ScoreBins> bins_;
};

}  // namespace tutti
