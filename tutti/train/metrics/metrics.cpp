#include "tutti/train/metrics/metrics.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/train/metrics/found_metrics.h"
#include "tutti/train/metrics/surprise_metric.h"

namespace tutti::train {
namespace {

/// The outputs at one position: K numbers, `stride` apart.
struct Outputs {
  const float* y;
  int64_t classes, stride;
  float operator[](int64_t k) const { return y[k * stride]; }

  /// Returns the first of the largest; -1 if any is NaN.
  int64_t largest() const {
    int64_t best = 0;
    bool finite = true;
    for (int64_t k = 0; k < classes; ++k) {
      finite = finite && !std::isnan((*this)[k]);
      if ((*this)[k] > (*this)[best]) best = k;
    }
    return finite ? best : -1;
  }
  /// log(sum exp(y)) - y[label], without overflow.
  double cross_entropy(int64_t label) const {
    double greatest = (*this)[0], sum = 0;
    for (int64_t k = 1; k < classes; ++k) greatest = std::max<double>(greatest, (*this)[k]);
    for (int64_t k = 0; k < classes; ++k) sum += std::exp((*this)[k] - greatest);
    return std::log(sum) + (greatest - static_cast<double>((*this)[label]));
  }
};

/// Calls look(outputs, label) for each position of sample i.
template <class Look>
void at_each_position(const SampleTensor& prediction, const SampleTensor& target, int64_t i,
                      Look look) {
  const int64_t classes = prediction.sample[0], positions = target.sample.elements();
  const float* y = prediction.numbers(i);
  const int32_t* labels = target.classes(i);
  for (int64_t p = 0; p < positions; ++p) {
    if (labels[p] < 0 || labels[p] >= classes)
      throw ConfigError(
          fmt::format("sample {} of the batch has label {}, the model has classes 0 to {}", i,
                      labels[p], classes - 1));
    look(Outputs{y + p, classes, positions}, labels[p]);
  }
}

class Accuracy final : public Share {
 public:
  Accuracy() : Share("accuracy") {}
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    int64_t right = 0;
    at_each_position(prediction, target, i,
                     [&](const Outputs& y, int32_t label) { right += y.largest() == label; });
    return static_cast<double>(right) / static_cast<double>(target.sample.elements());
  }
};

class TopFive final : public Share {
 public:
  TopFive() : Share("top5") {}
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    double among = 0;
    at_each_position(prediction, target, i, [&](const Outputs& y, int32_t label) {
      int64_t before = y.largest() < 0 ? y.classes : 0;
      for (int64_t k = 0; k < y.classes; ++k)
        before += y[k] > y[label] || (y[k] == y[label] && k < label);
      among = before < 5;
    });
    return among;
  }
};

class CrossEntropy final : public Metric {
 public:
  explicit CrossEntropy(ops::SoftmaxCrossEntropyAttributes loss) : loss_(std::move(loss)) {}
  std::string_view name() const override { return "loss"; }
  bool higher_is_better() const override { return false; }
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    double sum = 0;
    at_each_position(prediction, target, i, [&](const Outputs& y, int32_t label) {
      sum += weight_of(label) * y.cross_entropy(label);
    });
    const double mean = loss_.scale * sum / static_cast<double>(target.sample.elements());
    const double weight = weight_of_sample(prediction, target, i);
    return weight > 0 ? mean / weight : 0;
  }
  /// Returns the mean weight of its labels: over all samples the metric equals the mean that
  /// training takes over a batch.
  double weight_of_sample(const SampleTensor& /*prediction*/, const SampleTensor& target,
                          int64_t i) const override {
    if (loss_.class_weights.empty() || loss_.mean_over == ops::MeanOver::labels) return 1;
    const int64_t positions = target.sample.elements();
    double sum = 0;
    for (int64_t p = 0; p < positions; ++p) sum += weight_of(target.classes(i)[p]);
    return sum / static_cast<double>(positions);
  }

 private:
  double weight_of(int32_t label) const {
    return loss_.class_weights.empty() ? 1 : loss_.class_weights.at(static_cast<size_t>(label));
  }
  ops::SoftmaxCrossEntropyAttributes loss_;
};

class IntersectionOverUnion final : public Share {
 public:
  IntersectionOverUnion() : Share("iou") {}
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    const auto classes = static_cast<size_t>(prediction.sample[0]);
    std::vector<int64_t> both(classes), either(classes);
    at_each_position(prediction, target, i, [&](const Outputs& y, int32_t label) {
      const int64_t found = y.largest();
      ++either[static_cast<size_t>(label)];
      if (found == label)
        ++both[static_cast<size_t>(label)];
      else if (found >= 0)
        ++either[static_cast<size_t>(found)];
    });
    double sum = 0;
    for (size_t k = 0; k < classes; ++k)
      sum += either[k] == 0 ? 1 : static_cast<double>(both[k]) / static_cast<double>(either[k]);
    return sum / static_cast<double>(classes);
  }
};

/// The mean over a sample's numbers: a loss on what the network learns.
class Pointwise : public Metric {
 public:
  Pointwise(std::string name, ops::PointwiseLossAttributes loss)
      : name_(std::move(name)), loss_(loss) {}
  std::string_view name() const override { return name_; }
  Takes takes() const override { return Takes::learned; }
  bool higher_is_better() const override { return false; }
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    const int64_t count = prediction.sample.elements();
    double sum = 0;
    for (int64_t e = 0; e < count; ++e)
      sum += of_element(prediction.numbers(i)[e], target.numbers(i)[e]);
    return loss_.scale * sum / static_cast<double>(count);
  }

 private:
  double of_element(double x, double t) const {  // as in ops/losses.h
    const double d = std::abs(x - t);
    switch (loss_.kind) {
      case ops::PointwiseLossKind::mse: return d * d;
      case ops::PointwiseLossKind::mae: return d;
      case ops::PointwiseLossKind::huber:
        return d < loss_.delta ? d * d / 2 : loss_.delta * (d - loss_.delta / 2);
      case ops::PointwiseLossKind::bce_with_logits:
        return (1 - t) * x + (1 + (loss_.pos_weight - 1) * t) *
                                 (std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.0));
    }
    return NAN;
  }
  std::string name_;
  ops::PointwiseLossAttributes loss_;
};

/// The mean absolute error in the data's units.
class MeanError final : public Pointwise {
 public:
  explicit MeanError(std::string unit)
      : Pointwise("mae", {.kind = ops::PointwiseLossKind::mae}), unit_(std::move(unit)) {}
  Takes takes() const override { return Takes::differences; }
  std::string_view unit() const override { return unit_; }

 private:
  std::string unit_;
};

/// The losses that the model itself defines.
class OwnLoss final : public Metric {
 public:
  std::string_view name() const override { return "loss"; }
  bool higher_is_better() const override { return false; }
  bool of_own_losses() const override { return true; }
  double of_sample(const SampleTensor&, const SampleTensor&, int64_t) const override { return 0; }
};

/// A metric for one of several predictions.
class OfOutput final : public Metric {
 public:
  OfOutput(std::string name, size_t output, std::shared_ptr<const Metric> metric)
      : name_(std::move(name)), output_(output), metric_(std::move(metric)) {}
  std::string_view name() const override { return name_; }
  bool higher_is_better() const override { return metric_->higher_is_better(); }
  bool is_fraction() const override { return metric_->is_fraction(); }
  size_t output() const override { return output_; }
  bool of_order() const override { return metric_->of_order(); }
  double of_mean(double mean) const override { return metric_->of_mean(mean); }
  double of_sample(const SampleTensor& prediction, const SampleTensor& target,
                   int64_t i) const override {
    return metric_->of_sample(prediction, target, i);
  }
  double weight_of_sample(const SampleTensor& prediction, const SampleTensor& target,
                          int64_t i) const override {
    return metric_->weight_of_sample(prediction, target, i);
  }
  double without_weights() const override { return metric_->without_weights(); }
  std::string_view unit() const override { return metric_->unit(); }
  Takes takes() const override { return metric_->takes(); }

 private:
  std::string name_;
  size_t output_;
  std::shared_ptr<const Metric> metric_;  // shared with its original list
};

std::vector<std::shared_ptr<const Metric>>& own_metrics() {
  static std::vector<std::shared_ptr<const Metric>> list;
  return list;
}

std::vector<std::shared_ptr<const Metric>> metrics_of_objective(
    const models::ModelSpec& model, const models::Objective& objective) {
  std::vector<std::shared_ptr<const Metric>> metrics;
  for (const std::string& name : objective.metrics) {
    const auto own =
        std::ranges::find(own_metrics(), name, [](const auto& metric) { return metric->name(); });
    if (own == own_metrics().end())
      throw ConfigError(fmt::format("there is no metric '{}': register_metric adds it", name));
    metrics.push_back(*own);
  }
  ops::SoftmaxCrossEntropyAttributes entropy = model.loss;
  entropy.label_smoothing = 0;
  entropy.scale *= objective.weight;
  ops::PointwiseLossAttributes pointwise = model.pointwise_loss;
  pointwise.kind = *objective.loss;
  pointwise.scale *= objective.weight;
  switch (*objective.task) {
    case models::TaskKind::classify: {
      const auto target =
          std::ranges::find(model.targets, objective.target, &models::ModelField::name);
      metrics.push_back(std::make_shared<Accuracy>());
      if ((target == model.targets.end() ? model.classes : target->classes) > 5)
        metrics.push_back(std::make_shared<TopFive>());
      if (!objective.own_loss) metrics.push_back(std::make_shared<CrossEntropy>(entropy));
      break;
    }
    case models::TaskKind::language:
      metrics.push_back(std::make_shared<Surprise>("loss", Surprise::Unit::nats,
                                                   model.loss.scale * objective.weight));
      metrics.push_back(std::make_shared<Surprise>("perplexity", Surprise::Unit::perplexity, 1.f));
      metrics.push_back(std::make_shared<Surprise>("bits", Surprise::Unit::bits, 1.f));
      // Without fields, as when a configuration is read, bytes may still become known.
      if (const auto target =
              std::ranges::find(model.targets, objective.target, &models::ModelField::name);
          target != model.targets.end() ? !target->class_bytes.empty() : model.targets.empty())
        metrics.push_back(std::make_shared<BitsPerByte>(
            target != model.targets.end() ? target->class_bytes : std::vector<int32_t>{}));
      metrics.push_back(std::make_shared<TokenAccuracy>());
      break;
    case models::TaskKind::segment:
      metrics.push_back(std::make_shared<IntersectionOverUnion>());
      metrics.push_back(std::make_shared<Accuracy>());
      if (!objective.own_loss) metrics.push_back(std::make_shared<CrossEntropy>(entropy));
      break;
    case models::TaskKind::regress: {
      const auto target =
          std::ranges::find(model.targets, objective.target, &models::ModelField::name);
      const bool known = target != model.targets.end();
      if (pointwise.kind == ops::PointwiseLossKind::bce_with_logits) {
        metrics.push_back(std::make_shared<OfFound>("f1", OfFound::Kind::f1));
        metrics.push_back(std::make_shared<RightSide>());
        metrics.push_back(std::make_shared<OfFound>("precision", OfFound::Kind::precision));
        metrics.push_back(std::make_shared<OfFound>("recall", OfFound::Kind::recall));
        // Without fields, as when a configuration is read, it may still be one.
        if (known ? target->sample.elements() == 1 : model.targets.empty())
          metrics.push_back(std::make_shared<UnderCurve>());
      } else {
        metrics.push_back(std::make_shared<MeanError>(known ? target->unit : ""));
      }
      if (!objective.own_loss) metrics.push_back(std::make_shared<Pointwise>("loss", pointwise));
      break;
    }
  }
  return metrics;
}

}  // namespace

void register_metric(std::shared_ptr<const Metric> metric) {
  for (const auto& known : own_metrics())
    if (known->name() == metric->name())
      throw ConfigError(fmt::format("there is a metric '{}' already", metric->name()));
  own_metrics().push_back(std::move(metric));
}

size_t registered_metrics() { return own_metrics().size(); }

std::vector<std::shared_ptr<const Metric>> metrics_of(const models::ModelSpec& model) {
  const std::vector<models::Objective> objectives = models::objectives_of(model);
  std::vector<std::shared_ptr<const Metric>> metrics;
  for (size_t o = 0; o < objectives.size(); ++o) {
    const std::string& name = objectives[o].name;
    for (auto& metric : metrics_of_objective(model, objectives[o]))
      metrics.push_back(o == 0 && name.empty()
                            ? std::move(metric)
                            : std::make_shared<OfOutput>(name + "." + std::string(metric->name()),
                                                         o, std::move(metric)));
  }
  const auto is_loss = [](const auto& metric) { return metric->name() == "loss"; };
  if (std::ranges::any_of(objectives, &models::Objective::own_loss) &&
      std::ranges::none_of(metrics, is_loss))
    metrics.push_back(std::make_shared<OwnLoss>());
  return metrics;
}

const Metric& find_metric(std::span<const std::shared_ptr<const Metric>> metrics,
                          std::string_view name) {
  std::string names;
  for (const auto& metric : metrics) {
    if (metric->name() == name) return *metric;
    names.append(names.empty() ? "" : ", ").append(metric->name());
  }
  throw ConfigError(fmt::format("there is no metric '{}'; this task has {}", name, names));
}

std::string to_text(const Metric& metric, double value) {
  if (metric.is_fraction()) return fmt::format("{} {:.2f} %", metric.name(), value * 100);
  const double size = std::abs(value);  // the data's units may have any size
  const bool usual = value == 0 || (size >= 1e-3 && size < 1e6);
  return fmt::format("{} {}{}{}", metric.name(),
                     usual ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value),
                     metric.unit().empty() ? "" : " ", metric.unit());
}

}  // namespace tutti::train
