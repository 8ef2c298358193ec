#pragma once
// ServerUpdate: how a server rank applies a gradient: by the training plan's update alone, on its
// own weights and optimizer state, within its parts.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/plan/run/executor.h"
#include "tutti/sync/weight_server.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::train {

/// Used by one thread at a time.
class ServerUpdate final : public sync::ServedWeights, private plan::Exchanges {
 public:
  struct Spec {
    ServerSettings settings;
    int server = 0;
    std::vector<sync::ServedPart> parts;
    int micro_batches = 1;                ///< micro-batches of a gradient, which is their sum
    std::function<double(int64_t)> rate;  ///< an update's, by its number; called on any thread
  };
  /// Begins with the parameters of `weights`, and keeps the optimizer's state there. All arguments
  /// must outlive this object.
  ServerUpdate(const Network& network, const backend::Backend& backend, Spec spec,
               Weights& weights);

  std::byte* parameters() override { return parameters_.data(); }
  /// Throws NumericError if the gradient's norm is not finite.
  void apply(const sync::ServedUpdate& update) override;

 private:
  void start(int) override {}
  bool done(int) override { return true; }
  plan::ExchangeOutput finish(int exchange) override;
  const float* compensated(int bucket, const float* gradient, const exchange::Shard& range);

  const Network& network_;
  const Spec spec_;
  device::Buffer parameters_, compensated_;
  std::vector<exchange::Shard> ranges_;  // by bucket
  const plan::Plan plan_;
  std::unique_ptr<plan::Executor> executor_;
  const sync::ServedUpdate* update_ = nullptr;  // set while it is applied
};

}  // namespace tutti::train
