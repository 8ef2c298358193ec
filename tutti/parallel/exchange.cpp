#include "tutti/parallel/exchange.h"

#include <chrono>

#include "tutti/base/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void add_into(float* __restrict into, const float* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] += from[i];
}

constexpr size_t kPage = 4096;

}  // namespace

GradientExchange::GradientExchange(comm::Communicator& communicator, ReplicaMap map, BucketLayout layout)
    : communicator_(communicator),
      map_(std::move(map)),
      layout_(std::move(layout)),
      plan_(comm::plan_slots(map_.replicas(), map_.owned())),
      stride_((layout_.bytes + kPage - 1) / kPage * kPage),
      window_(communicator.allocate(stride_ * static_cast<size_t>(plan_.slots))),
      folded_(layout_.buckets.size(), 0) {
  CHECK(map_.ranks() == communicator.size() && map_.rank() == communicator.rank(), "the replica map is of rank {}/{}, the communicator of {}/{}",
        map_.rank(), map_.ranks(), communicator.rank(), communicator.size());
  for (const Bucket& bucket : layout_.buckets) {
    comm::ReductionSpec spec{.name = bucket.name,
                             .count = bucket.floats(),
                             .replicas = map_.replicas(),
                             .first = map_.first(),
                             .window = window_.get(),
                             .parts = {}};
    for (int part = 0; part < static_cast<int>(plan_.parts.size()); ++part) spec.parts.push_back(slot_memory(part) + bucket.begin / sizeof(float));
    reductions_.push_back(communicator.plan_reduction(spec));
  }
}

float* GradientExchange::slot_memory(int slot) const {
  return reinterpret_cast<float*>(window_->data() + static_cast<size_t>(slot) * stride_);
}

float* GradientExchange::slot(int local_replica) const {
  CHECK(0 <= local_replica && local_replica < map_.local_count(), "local replica {} of {}", local_replica, map_.local_count());
  return slot_memory(plan_.replicas[static_cast<size_t>(local_replica)].slot);
}

void GradientExchange::fold(int local_replica, const Bucket& bucket) {
  const auto& adds = plan_.replicas[static_cast<size_t>(local_replica)].adds;
  if (adds.empty()) return;
  const auto begin = Clock::now();
  const size_t at = bucket.begin / sizeof(float);
  for (const auto& add : adds) add_into(slot_memory(add.into) + at, slot_memory(add.from) + at, bucket.floats());
  counters_.folding_seconds += seconds_since(begin);
}

void GradientExchange::ready(int local_replica, int bucket) {
  const auto b = static_cast<size_t>(bucket);
  CHECK(b < reductions_.size(), "bucket {} of {}", bucket, buckets());
  CHECK(!reductions_[b]->in_flight(), "{} is still being summed: wait for it before the next step", reductions_[b]->name());
  CHECK(folded_[b] == local_replica, "{}: local replica {} is ready, {} was expected", reductions_[b]->name(), local_replica, folded_[b]);
  fold(local_replica, layout_.buckets[b]);
  if (++folded_[b] < map_.local_count()) return;
  reductions_[b]->start();
  ++counters_.reductions;
  counters_.bytes_moved += reductions_[b]->bytes_moved();
}

void GradientExchange::wait(int bucket) {
  const auto b = static_cast<size_t>(bucket);
  CHECK(b < reductions_.size(), "bucket {} of {}", bucket, buckets());
  CHECK(folded_[b] == map_.local_count(), "{}: waiting with {} of {} local replicas ready", reductions_[b]->name(), folded_[b], map_.local_count());
  if (!reductions_[b]->test()) {
    const auto begin = Clock::now();
    reductions_[b]->wait();
    counters_.exposed_seconds += seconds_since(begin);
  }
  folded_[b] = 0;
}

const float* GradientExchange::result(int bucket) const { return reductions_[static_cast<size_t>(bucket)]->result(); }

}  // namespace tutti
