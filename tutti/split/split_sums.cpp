// Adds up over the parts of a sample: losses, and the statistics of batch norms.

#include <utility>

#include "tutti/ops/batch_norm.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/parts.h"
#include "tutti/split/splitter.h"

namespace tutti::split {
namespace {

bool divides_by_weights(const ops::SoftmaxCrossEntropyAttributes& loss) {
  return !loss.class_weights.empty() && loss.mean_over == ops::MeanOver::weights;
}

}  // namespace

/// A loss over a part's rows is weighted by their share of all rows; a loss that all parts compute
/// identically is weighted by one over the parts.
graph::OpPtr Splitter::loss_of_part(const graph::Node& n, bool shared) const {
  if (grid_.parts() == 1) return nullptr;
  double share = 1;
  for (int axis = 0; axis < PartGrid::kAxes; ++axis) {
    const auto extent = shared ? static_cast<double>(rows_of(old_, n, axis)) : 0;
    if (shared && grid_.along(axis) > 1)
      share *= static_cast<double>(grid_.rows(rows_of(old_, n, axis), grid_.part(), axis).count()) /
               extent;
  }
  if (!shared) share = 1.0 / grid_.parts();
  const auto factor = static_cast<float>(share);
  if (const auto* op = dynamic_cast<const ops::SoftmaxCrossEntropy*>(n.op.get())) {
    ops::SoftmaxCrossEntropyAttributes loss = op->loss();
    if (shared && divides_by_weights(loss)) {
      loss.mean_over = ops::MeanOver::given;  // the sum of all parts' weights is an input
    } else {
      loss.scale *= factor;
    }
    return std::make_shared<ops::SoftmaxCrossEntropy>(std::move(loss));
  }
  if (const auto* op = dynamic_cast<const ops::PointwiseLoss*>(n.op.get())) {
    ops::PointwiseLossAttributes loss = op->loss();
    loss.scale *= factor;
    return std::make_shared<ops::PointwiseLoss>(loss);
  }
  if (const auto* op = dynamic_cast<const ops::GaussianKL*>(n.op.get()))
    return std::make_shared<ops::GaussianKL>(op->scale() * factor);
  return nullptr;
}

/// Returns the sum of all parts' label weights, by which the mean of a weighted loss divides.
graph::Value Splitter::weights_of_labels(const graph::Node& n, graph::Value labels) {
  const auto& loss = dynamic_cast<const ops::SoftmaxCrossEntropy&>(*n.op).loss();
  ops::NormGroup group{.peers = {}, .counts = {}, .me = 0, .tag = std::exchange(tag_, tag_ + 2)};
  for (int part = 0; part < grid_.parts(); ++part) group.peers.push_back(grid_.peer_of(part));
  group.me = static_cast<size_t>(grid_.part());
  graph::Graph& graph = result_.graph;
  const graph::Value mine = graph.append1(
      n.name + ".weights", std::make_shared<ops::LabelWeights>(loss.class_weights), {labels});
  std::vector<graph::Value> all;
  for (const auto& each :
       ops::exchange_in_group(graph, n.name + ".parts", group, group.tag, {mine}))
    all.push_back(each.front());
  return graph.append(n.name + ".all_weights", std::make_shared<ops::SumParts>(1.0f), all).front();
}

/// Merges this rank's moments with those of all ranks that share a batch norm.
void Splitter::add_shared_stats(const graph::Node& n, graph::Value y) {
  graph::Graph& graph = result_.graph;
  const auto& stats = dynamic_cast<const ops::BatchNormStats&>(*n.op);
  const bool shared = held(n.in[0]).shared;
  const Shape& shape = old_.shape(n.in[0]);
  ops::NormGroup group{.peers = {}, .counts = {}, .me = 0, .tag = std::exchange(tag_, tag_ + 2)};
  // Parts of one replica that hold all of its rows count once.
  const int step = shared ? 1 : grid_.parts();
  for (int peer = shared ? 0 : grid_.part(); peer < grid_.peers(); peer += step) {
    int64_t count = shape[0] * shape.elements_from(2);
    for (int axis = 0; shared && axis < PartGrid::kAxes; ++axis)
      if (grid_.along(axis) > 1)
        count = count / shape[kRowsDim + axis] *
                grid_.rows(shape[kRowsDim + axis], peer % grid_.parts(), axis).count();
    if (peer == grid_.me()) group.me = group.peers.size();
    group.peers.push_back(peer);
    group.counts.push_back(count);
  }
  const std::vector<graph::Value> mine =
      graph.append(n.name + ".moments", std::make_shared<ops::BatchNormMoments>(), {&y, 1});
  std::vector<graph::Value> in{held(n.in[1]).value, held(n.in[2]).value};
  for (const auto& each : ops::exchange_in_group(graph, n.name + ".parts", group, group.tag, mine))
    in.insert(in.end(), each.begin(), each.end());
  const std::vector<graph::Value> out =
      graph.append(n.name, std::make_shared<ops::MergeMoments>(group, stats.statistics()), in);
  for (size_t k = 0; k < out.size(); ++k) held_[static_cast<size_t>(n.out[k].id)].value = out[k];
}

}  // namespace tutti::split
