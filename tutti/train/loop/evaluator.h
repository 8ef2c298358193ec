#pragma once
// Evaluator: measures the quality of the current weights on a data set.

#include <functional>
#include <memory>
#include <optional>

#include "tutti/data/pipeline/pipeline.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/network/network.h"
#include "tutti/train/step/part_exchange.h"

namespace tutti::train {

/// The inputs of an evaluator; all of them must outlive it.
struct Evaluated {
  const EvaluationNetwork& network;
  const backend::Backend& backend;
  comm::Communicator& communicator;
  const data::Dataset& dataset;
  const data::SampleWriter& writer;  ///< fills the tensors of network.batch()
  /// The steps of each of network.targets, where the writer fills only inputs.
  std::span<const data::ValueFunction> targets{};
  /// Fills the tensors of network.own_losses->batch(); null: those losses are not evaluated.
  const data::SampleWriter* losses = nullptr;
};

/// Collective. Combines each rank's part into the quality over all ranks, the same on every rank,
/// and settles it.
void put_together(Quality& quality, comm::Communicator& communicator);

/// Runs an evaluation plan over a data set. Each group of ranks takes a share of the samples, and
/// the ranks of a group share every one of them. Used by the thread that uses the communicator.
class Evaluator {
 public:
  Evaluator(const Evaluated& what, std::span<const std::shared_ptr<const Metric>> metrics);

  /// Binds the weights and statistics that every later run uses.
  void bind(const plan::ReplicaState& model);
  /// Collective. Returns the quality over the first `samples` of the data set, each counted once,
  /// on all ranks; a group's last batch may be partial. If `keep` is not null, it receives each of
  /// the network's predictions for this group's samples in the plain layout and the data's units
  /// (train/settings/units.h).
  Quality run(int64_t samples, int readers, std::vector<std::vector<float>>* keep = nullptr);

  /// Receives one of the network's predictions for the next `count` samples, in the plain layout
  /// and the data's units.
  using TakePredictions = std::function<void(size_t output, const float* y, int64_t count)>;
  /// Collective. Only predicts, in the order of the group's samples, on all of its ranks: the
  /// writer may fill the inputs only.
  void predict(int64_t samples, int readers, const TakePredictions& take);

 private:
  using Look = std::function<void(const data::Batch& batch)>;
  /// Calls look after each forward pass of this group's share.
  void pass(int64_t samples, int readers, const Look& look);
  void pass_on(int64_t samples);
  int64_t passes_of_all(int64_t samples) const;
  void run_for_others();
  std::vector<Judged> judged() const;
  /// Returns a prediction in the plain layout; copied to `plain_` if the plan's layout differs.
  const float* prediction(size_t output);
  /// Returns the data steps that a prediction is passed back through; null: none.
  const data::ValueFunction* steps_back(size_t output) const;
  /// Returns the first `count` samples of prediction(output), `y`, in the data's units; stored in
  /// `restored_` if these differ.
  const float* restored(size_t output, const float* y, int64_t count);
  /// Returns whether a metric for this output uses such numbers.
  bool is_taken(size_t output, Metric::Takes numbers) const;
  /// Fills the inputs of metrics and, with `keep`, predictions in the data's units.
  void judge(std::vector<Judged>& outputs, const data::Batch& batch, bool keep);
  /// Adds this rank's share of the losses that the model itself defines.
  void add_losses(int64_t samples, int readers, Quality& quality);

  const Evaluated what_;
  std::unique_ptr<plan::Executor> executor_,
      losses_;  ///< the latter of own losses; null: there are none
  PartExchange parts_;
  std::vector<std::shared_ptr<const Metric>> metrics_;
  std::vector<std::vector<float>> plain_, restored_, restored_target_, shifted_,
      shifted_target_;  ///< by prediction
};

}  // namespace tutti::train
