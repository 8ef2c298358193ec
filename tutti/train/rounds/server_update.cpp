#include "tutti/train/rounds/server_update.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/sync/delay_compensation.h"

namespace tutti::train {
namespace {

/// Uses one thread: it may be called from within a team, or beside one.
plan::Plan update_alone(plan::Plan plan) {
  plan.packs.clear();
  plan.bands.clear();
  plan.waits_at_end.clear();
  for (plan::PlanStage& stage : plan.stages) stage.packs.clear();
  plan.options.threads = 1;
  plan.packed_bytes = plan.tile_scratch_bytes = 0;
  return plan;
}

}  // namespace

ServerUpdate::ServerUpdate(const Network& network, const backend::Backend& backend, Spec spec,
                           Weights& weights)
    : network_(network), spec_(std::move(spec)),
      parameters_(network.training.variables.parameter_bytes),
      ranges_(network.buckets.buckets.size()), plan_(update_alone(network.training)),
      executor_(plan::make_executor(plan_, backend)) {
  std::memcpy(parameters_.data(), weights.parameters(), parameters_.bytes());
  for (const sync::ServedPart& part : spec_.parts)
    if (part.server == spec_.server) ranges_[static_cast<size_t>(part.bucket)] = part.range;
  if (spec_.settings.delay_compensation > 0) compensated_ = device::Buffer(network.buckets.bytes);
  executor_->bind({.parameters = parameters_.data(), .state = weights.state()});
  executor_->set_scalar(network.gradient_scale, 1.0F / static_cast<float>(spec_.micro_batches));
  executor_->set_exchanges(*this);
}

void ServerUpdate::apply(const sync::ServedUpdate& update) {
  double rate = spec_.rate(update.number);
  if (spec_.settings.stale_rate > 0 && update.stale > 1)
    rate /= std::pow(static_cast<double>(update.stale), spec_.settings.stale_rate);
  update_ = &update;
  executor_->set_scalar(network_.lr, static_cast<float>(rate));
  executor_->update({.step = update.number});
  executor_->settle();
  update_ = nullptr;
  if (!network_.gradient_norm.valid()) return;
  const float norm = *static_cast<const float*>(executor_->result(network_.gradient_norm));
  if (!std::isfinite(norm))
    throw NumericError(fmt::format(
        "the norm of gradient {} is {}, although the gradient is finite: its squares are too "
        "large; lower optimizer.lr or look at the data",
        update.number, norm));
}

const float* ServerUpdate::compensated(int bucket, const float* gradient,
                                       const exchange::Shard& range) {
  const size_t begin = network_.buckets.buckets[static_cast<size_t>(bucket)].begin;
  auto* const out = reinterpret_cast<float*>(compensated_.data() + begin);
  const size_t first = range.begin / sizeof(float);
  sync::compensate({.lambda = static_cast<float>(spec_.settings.delay_compensation) /
                              static_cast<float>(spec_.micro_batches),  // the gradient is a sum
                    .now = parameters_.data(),
                    .then = update_->then},
                   begin + range.begin, gradient + first,
                   {out + first, range.bytes() / sizeof(float)});
  return out;
}

plan::ExchangeOutput ServerUpdate::finish(int exchange) {
  const plan::PlanExchange& made = plan_.exchanges[static_cast<size_t>(exchange)];
  if (made.kind != plan::ExchangeKind::gradients) return {};
  const exchange::Shard& range = ranges_[static_cast<size_t>(made.bucket)];
  const float* gradient = update_->buckets[static_cast<size_t>(made.bucket)];
  if (compensated_.bytes() > 0 && update_->stale > 0 && range.bytes() > 0)
    gradient = compensated(made.bucket, gradient, range);
  return {.at = reinterpret_cast<const std::byte*>(gradient),
          .range = plan::ExchangeOutput::Range{range.begin, range.end}};
}

}  // namespace tutti::train
