#pragma once
// Network: a model compiled for this rank, for training and for evaluation, over one set of
// variables.

#include <filesystem>
#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/parallel/exchange.h"
#include "tutti/plan/plan.h"
#include "tutti/train/training_graph.h"

namespace tutti {

struct NetworkSpec {
  TrainingGraphSpec training;
  int threads = 1;
  std::string layout = "auto";
  size_t tile_bytes = 0;              ///< 0: the backend's advice
  bool measure = true;                ///< choose kernels and layouts by measurement
  Choices choices;                    ///< of a checkpoint, or empty
  std::filesystem::path tuning_file;  ///< where rank 0 keeps measurements between runs (unused with
                                      ///< `choices`); empty: nowhere
  int64_t evaluation_batch = 0;       ///< 0: the training batch
};

struct Network {
  Plan training;
  Value images, labels, logits, loss, lr, gradient_scale;  ///< of `training`
  Plan evaluation;  ///< forward alone, with running statistics
  Value evaluation_images, evaluation_logits;
  BucketLayout buckets;             ///< the plan's buckets as the exchange wants them
  ExchangeCompression compression;  ///< and how they are compressed
};

/// Collective. Rank 0 compiles first and measures; the others take its choices. Throws CommError
/// naming the ranks whose plan differs from rank 0's.
std::unique_ptr<Network> compile_network(const NetworkSpec& spec, const Backend& backend,
                                         comm::Communicator& communicator);

/// The evaluation side alone, for `tutti eval`: no gradients, no optimizer.
struct EvaluationNetwork {
  Plan plan;
  Value images, logits;
};
std::unique_ptr<EvaluationNetwork> compile_evaluation(const ModelSpec& model, int threads,
                                                      const Variables* variables,
                                                      const Backend& backend,
                                                      const PlanOptions& options = {});

}  // namespace tutti
