#pragma once
// Evaluator: the quality of the present weights on a data set.

#include <functional>
#include <memory>
#include <optional>

#include "tutti/data/pipeline/pipeline.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/plan/executor.h"
#include "tutti/train/metrics/metrics.h"
#include "tutti/train/network/network.h"
#include "tutti/train/step/part_exchange.h"

namespace tutti {

/// What an evaluator works on; all of it must outlive it.
struct Evaluated {
  const EvaluationNetwork& network;
  const Backend& backend;
  comm::Communicator& communicator;
  const data::Dataset& dataset;
  const data::SampleWriter& writer;  ///< fills the tensors of network.batch()
  /// The steps of each of network.targets, where the writer fills inputs alone.
  std::span<const data::ValueFunction> targets{};
  /// Fills the tensors of network.own_losses->batch(); null: those losses are not asked for.
  const data::SampleWriter* losses = nullptr;
};

/// Collective. Makes of each rank's part what all ranks have seen, the same on every rank, and
/// settles it.
void put_together(Quality& quality, comm::Communicator& communicator);

/// Runs an evaluation plan over a data set. Groups of ranks take a share of the samples each, and
/// the ranks of a group share every one of them. Used by the thread that uses the communicator.
class Evaluator {
 public:
  Evaluator(const Evaluated& what, std::span<const std::shared_ptr<const Metric>> metrics);

  /// Binds the weights and statistics that every later run uses.
  void bind(const ReplicaState& model);
  /// Collective. Quality over the first `samples` of the data set, each counted once, on all ranks;
  /// a group's last batch may be partial. `keep`, if not null, receives each of the network's
  /// predictions of this group's samples in the plain layout and the units of the data
  /// (train/settings/units.h).
  Quality run(int64_t samples, int readers, std::vector<std::vector<float>>* keep = nullptr);

  /// One of the network's predictions of the next `count` samples, in the plain layout and the
  /// units of the data.
  using TakePredictions = std::function<void(size_t output, const float* y, int64_t count)>;
  /// Collective. Predicts alone, in the order of the group's samples, on all of its ranks: the
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
  /// A prediction in the plain layout; copied to `plain_` where the plan has another.
  const float* prediction(size_t output);
  /// The steps that a prediction goes back through; null: none.
  const data::ValueFunction* steps_back(size_t output) const;
  /// The first `count` samples of prediction(output), `y`, in the units of the data; in `restored_`
  /// where that is another.
  const float* restored(size_t output, const float* y, int64_t count);
  /// Whether a metric of this output takes such numbers.
  bool is_taken(size_t output, Metric::Takes numbers) const;
  /// Fills what metrics take, and with `keep` predictions in the units of the data.
  void judge(std::vector<Judged>& outputs, const data::Batch& batch, bool keep);
  /// This rank's share of the losses that the model writes itself.
  void add_losses(int64_t samples, int readers, Quality& quality);

  const Evaluated what_;
  Executor executor_;
  std::optional<Executor> losses_;
  PartExchange parts_;
  std::vector<std::shared_ptr<const Metric>> metrics_;
  std::vector<std::vector<float>> plain_, restored_, restored_target_, shifted_,
      shifted_target_;  ///< of each prediction
};

}  // namespace tutti
