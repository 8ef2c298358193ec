#include "tutti/data/pipeline/batch_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti::data {

TrainingOrder::TrainingOrder(const Sampler& sampler, const TrainingStart& start)
    : SampledOrder(sampler), first_step_(start.epoch * sampler.steps_per_epoch() + start.step),
      first_replica_(start.first_replica), replicas_(start.replicas) {
  CHECK(start.epoch >= 0 && start.step >= 0, "epoch {} step {}", start.epoch, start.step);
  CHECK(
      replicas_ > 0 && first_replica_ >= 0 && first_replica_ + replicas_ <= sampler.spec().replicas,
      "replicas {} + {} of {}", first_replica_, replicas_, sampler.spec().replicas);
}

int64_t TrainingOrder::batches() const { return std::numeric_limits<int64_t>::max(); }

BatchId TrainingOrder::id(int64_t k) const {
  const int64_t step = first_step_ + k / replicas_;
  return {.position = {.epoch = step / sampler_.steps_per_epoch(),
                       .step = step % sampler_.steps_per_epoch(),
                       .replica = first_replica_ + static_cast<int>(k % replicas_)},
          .count = capacity(),
          .augment = true};
}

void DealtOrder::add(const Position& position) {
  const std::lock_guard lock(mutex_);
  dealt_.push_back(position);
  if (std::ssize(dealt_) <= kept_) return;
  dealt_.pop_front();
  ++forgotten_;
}

int64_t DealtOrder::batches() const {
  const std::lock_guard lock(mutex_);
  return forgotten_ + std::ssize(dealt_);
}

BatchId DealtOrder::id(int64_t k) const {
  const std::lock_guard lock(mutex_);
  CHECK(forgotten_ <= k && k < forgotten_ + std::ssize(dealt_), "batch {} is not among those dealt",
        k);
  return {.position = dealt_[static_cast<size_t>(k - forgotten_)],
          .count = capacity(),
          .augment = true};
}

EvaluationOrder::EvaluationOrder(const Range& range, int64_t batch) : range_(range), batch_(batch) {
  CHECK(batch > 0 && range.begin >= 0 && range.begin <= range.end,
        "range [{}, {}) in batches of {}", range.begin, range.end, batch);
}

BatchId EvaluationOrder::id(int64_t k) const {
  return {.position = {.epoch = 0, .step = k, .replica = 0},
          .count = std::min(batch_, range_.size() - k * batch_),
          .augment = false};
}

void EvaluationOrder::indices(int64_t k, int64_t first, std::span<int64_t> out) const {
  std::iota(out.begin(), out.end(), range_.begin + k * batch_ + first);
}

}  // namespace tutti::data
