// A workload of one's own: a network that looks at an image at two scales, and a metric.
// docs/own_workload.md explains each line.

#include "workload.h"

#include <algorithm>
#include <cmath>

#include "tutti/train/workload.h"

namespace {

using tutti::graph::Graph;
using tutti::graph::Value;

/// Convolution, batch norm, ReLU, and the average over positions: one number a channel.
Value branch(Graph& graph, const std::string& name, Value x, int64_t side,
             const tutti::models::ModelSpec& spec) {
  x = tutti::ops::conv(graph, name + ".conv1", x,
                       {.out_channels = spec.width > 0 ? spec.width : 16,
                        .kernel = tutti::ops::in_all(side),
                        .stride = tutti::ops::in_all(2),
                        .pad = tutti::ops::in_all(side / 2)});
  x = tutti::ops::batch_norm(graph, name + ".bn1", x, spec.mode, {.relu = true});
  x = tutti::ops::conv(graph, name + ".conv2", x,
                       {.out_channels = 2 * graph.shape(x)[1],
                        .kernel = tutti::ops::in_all(3),
                        .stride = tutti::ops::in_all(2),
                        .pad = tutti::ops::in_all(1)});
  x = tutti::ops::batch_norm(graph, name + ".bn2", x, spec.mode, {.relu = true});
  return tutti::ops::global_average_pool(graph, name + ".mean", x);
}

/// x [N, C, H, W] -> a number for each class.
Value two_scales(Graph& graph, Value x, const tutti::models::ModelSpec& spec) {
  const Value fine = branch(graph, "fine", x, 3, spec),
              coarse = branch(graph, "coarse", x, 7, spec);
  return tutti::ops::dense(graph, "classifier", tutti::ops::concat(graph, "both", {fine, coarse}),
                           {.outputs = spec.classes});
}

/// The probability that the network gives to the true class.
class Confidence final : public tutti::train::Metric {
 public:
  std::string_view name() const override { return "confidence"; }
  bool higher_is_better() const override { return true; }
  bool is_fraction() const override { return true; }
  double of_sample(const tutti::train::SampleTensor& prediction,
                   const tutti::train::SampleTensor& target, int64_t i) const override {
    const int64_t classes = prediction.sample.elements(), label = target.classes(i)[0];
    const float* y = prediction.numbers(i);
    if (label < 0 || label >= classes)
      throw tutti::ConfigError(fmt::format(
          "sample {} of the batch has label {}, the model has {} classes", i, label, classes));
    const double greatest = *std::max_element(y, y + classes);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(y[k] - greatest);
    return std::exp(y[label] - greatest) / sum;
  }
};

}  // namespace

void register_workload() {
  tutti::train::register_metric(std::make_shared<Confidence>());
  tutti::models::register_model({.name = "two-scales",
                                 .description = "two branches of convolutions, 3x3 and 7x7, and a "
                                                "classifier that sees both",
                                 .task = tutti::models::TaskKind::classify,
                                 .input = {1, 64, 64},
                                 .classes = 5,
                                 .takes_width = true,
                                 .prediction = two_scales,
                                 .objectives = [](const tutti::models::ModelSpec&) {
                                   return std::vector<tutti::models::Objective>{
                                       {.metrics = {"confidence"}}};
                                 }});
}

// For model.library; a program calls register_workload() itself.
TUTTI_WORKLOAD(register_workload);
