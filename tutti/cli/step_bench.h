#pragma once
// Whole training steps on random data that is already in memory: what `tutti bench step` times.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network.h"
#include "tutti/train/step_exchange.h"
#include "tutti/train/weights.h"

namespace tutti {

/// A network with one replica on each rank, and a batch for it. Steps are those of
/// train/trainer.cpp: run, exchange gradients, update. Not thread-safe.
class StepBench {
 public:
  /// Collective. Throws as compile_network does.
  StepBench(const NetworkSpec& spec, const ExchangeSettings& exchange, const Backend& backend,
            comm::Communicator& communicator);

  /// Collective. One step; returns the seconds it took on this rank.
  double step();

  const Network& network() const { return *network_; }
  Executor& executor() { return *executor_; }
  /// Seconds of all steps so far in which this rank waited for others.
  double exposed_seconds() const { return exchange_->exposed_seconds(); }
  /// Collective. Who waited for whom in the steps since the last call, of at most kStepsCompared.
  comm::ArrivalSummary arrivals() { return exchange_->arrivals().collect(); }
  /// Forward, backward and update of one sample.
  double flop_per_image() const;

 private:
  static constexpr int kStepsCompared = 1024;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StepExchange> exchange_;
  std::vector<Buffer> tensors_;  // of the batch
  int64_t steps_ = 0;
  int rank_;
};

}  // namespace tutti
