#include "tutti/train/step_exchange.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {
namespace {

/// How many block sums the update of each bucket leaves.
std::vector<size_t> norms_of(const Plan& plan) {
  std::vector<size_t> counts(plan.buckets.size(), 0);
  for (const UpdateStep& update : plan.updates)
    if (update.sums_norms) counts[static_cast<size_t>(update.bucket)] += static_cast<size_t>(update.step.request.out[0].elements());
  return counts;
}

}  // namespace

StepExchange::StepExchange(comm::Communicator& communicator, const ReplicaMap& map, const Network& network, const ExchangeSettings& settings)
    : communicator_(communicator), network_(network), gradients_(communicator, map, network.buckets, settings) {
  if (!settings.sharded) return;
  weights_.emplace(communicator, network.buckets.bytes);
  shards_.emplace(communicator, network.buckets, *weights_, norms_of(network.training));
}

void StepExchange::attach(Executor& executor, std::function<void(int, int)> on_ready) {
  ExchangeHook hook{.ready = [this, on_ready = std::move(on_ready)](int bucket) {
                      if (on_ready) on_ready(local_, bucket);
                      gradients_.ready(local_, bucket);
                    },
                    .poll = [this] { gradients_.poll(); },
                    .arrived = [this](int bucket) { return gradients_.arrived(bucket) && (!shards_ || shards_->all_have_read()); },
                    .wait = [this](int bucket) {
                      gradients_.wait(bucket);
                      if (shards_) shards_->wait_for_readers();
                      return gradients_.result(bucket);
                    }};
  if (shards_) {
    const std::vector<size_t> norms = norms_of(network_.training);
    if (std::ranges::any_of(norms, [](size_t count) { return count > 0; }))
      hook.sum_norms = [this](int bucket, std::span<float> sums) { shards_->sum_norms(bucket, sums); };
    hook.updated = [this](int bucket) { shards_->updated(bucket); };
    hook.gathered = [this](int bucket) { return shards_->gathered(bucket); };
    hook.gather = [this](int bucket) { shards_->gather(bucket); };
    for (int b = 0; b < gradients_.buckets(); ++b) executor.set_shard(b, shards_->mine(b).begin, shards_->mine(b).end);
  }
  executor.set_exchange(std::move(hook));
}

float* StepExchange::begin(int local_replica) {
  local_ = local_replica;
  return gradients_.slot(local_replica);
}

void StepExchange::end_of_backward() {
  if (shards_) shards_->finish_reading();
}

void StepExchange::plan_state(std::byte* state) {
  const bool root = communicator_.rank() == 0;
  const size_t kinds = network_.training.variables.state_kinds.size();
  for (size_t k = 0; k < kinds; ++k)
    for (int b = 0; b < gradients_.buckets(); ++b) {
      const Bucket& bucket = gradients_.layout().buckets[static_cast<size_t>(b)];
      std::byte* const at = state + k * network_.training.variables.parameter_bytes + bucket.begin;
      comm::CollectiveSpec spec{.name = fmt::format("state {} of {}", k, bucket.name), .kind = comm::Collective::gather, .count = bucket.floats(),
                                .input = at + shards_->mine(b).begin, .output = root ? at : nullptr};
      for (const Shard& shard : shards_->shards(b)) spec.parts.push_back({shard.begin / sizeof(float), shard.bytes() / sizeof(float)});
      state_.push_back(communicator_.plan(spec));
    }
}

void StepExchange::collect_state(std::byte* state) {
  if (!shards_) return;
  if (state_.empty()) plan_state(state);
  for (const auto& gather : state_) gather->start();
  for (const auto& gather : state_) gather->wait();
}

}  // namespace tutti
