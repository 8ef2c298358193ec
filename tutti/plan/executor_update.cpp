#include <algorithm>

#include "tutti/base/tree_sum.h"
#include "tutti/plan/executor_team.h"

namespace tutti {

void Executor::set_shard(int bucket, size_t begin, size_t end) {
  CHECK(begin <= end, "bucket {}: a shard from {} to {}", bucket, begin, end);
  check_bound(bucket, begin);
  check_bound(bucket, end);
  shards_.at(static_cast<size_t>(bucket)) = Shard{begin, end};
}

void Executor::check_bound(int bucket, size_t bound) const {
  const PlanBucket& slice = plan_.buckets.at(static_cast<size_t>(bucket));
  if (bound == slice.bytes) return;
  constexpr size_t kBlockBytes = kSumBlock * sizeof(float);
  const size_t at = slice.offset + bound;
  const bool on_block =
      bound < slice.bytes &&
      std::ranges::any_of(plan_.variables.parameters, [&](const Variable& variable) {
        return variable.offset <= at && at < variable.offset + variable.desc.bytes() &&
               (at - variable.offset) % kBlockBytes == 0;
      });
  CHECK(on_block,
        "bucket {}: a shard ends at byte {} of {}, which is not on a block of a parameter", bucket,
        bound, slice.bytes);
}

Window Executor::window_of(int bucket) const {
  if (!is_sharded(bucket)) return {};
  const Shard& shard = *shards_[static_cast<size_t>(bucket)];
  const std::byte* const slice =
      bases_[kParameters] + plan_.buckets[static_cast<size_t>(bucket)].offset;
  return {slice + shard.begin, slice + shard.end};
}

void Executor::sum_norms(const UpdateStep& update) {
  if (!is_sharded(update.bucket)) return;
  auto* const sums =
      static_cast<float*>(place_address(bases_.data(), nullptr, update.step.out[0], 0));
  exchange_.sum_norms(update.bucket,
                      {sums, static_cast<size_t>(update.step.request.out[0].elements())});
}

void Executor::update(const StepInfo& step) {
  for (const UpdateStep& update : plan_.updates)
    CHECK(!update.sums_norms || !is_sharded(update.bucket) || exchange_.sum_norms,
          "{}: the update is sharded, and nothing sums its norms over ranks", update.step.name);
  settle();  // of the last step there is something left only if no band reads it
  updating_ = step;
  std::ranges::fill(stages_, Stage::to_update);
  settle_buckets(false);
}

void Executor::settle() { settle_buckets(true); }

/// The bucket to go on with, the earliest used first; those that are not updated before those that
/// wait for other ranks' shards. -1: none, or none that can go on without waiting. Where ranks meet
/// to sum norms they take the buckets in one order, that of their use, and leave none for later:
/// one rank would wait for the norms of another that waits for it elsewhere.
int Executor::next_bucket(bool may_wait) {
  const bool meets = exchange_.sum_norms != nullptr;
  for (const int bucket : in_order_)
    if (stages_[static_cast<size_t>(bucket)] == Stage::to_update &&
        (may_wait || meets || !exchange_.arrived || exchange_.arrived(bucket)))
      return bucket;
  for (const int bucket : in_order_)
    if (stages_[static_cast<size_t>(bucket)] == Stage::to_pack &&
        (may_wait || !exchange_.gathered || exchange_.gathered(bucket)))
      return bucket;
  return -1;
}

void Executor::settle_buckets(bool may_wait) {
  if ((next_ = next_bucket(may_wait)) < 0) return;
  parallel([&](int t) {
    while (next_ >= 0) {
      settle_bucket(t, next_);
      if (t == 0) next_ = next_bucket(may_wait);
      meet();
    }
  });
}

/// The next stage of a bucket, by the whole team. Ends in a barrier.
void Executor::settle_bucket(int t, int bucket) {
  if (stages_[static_cast<size_t>(bucket)] == Stage::to_update)
    update_bucket(t, bucket);
  else
    pack_bucket(t, bucket);
}

void Executor::update_bucket(int t, int bucket) {
  const PlanBucket& plan = plan_.buckets[static_cast<size_t>(bucket)];
  if (t == 0) {
    const ScopedSpan span(spans_, waiting_, threads_.front()->lane);
    bases_[static_cast<size_t>(kFirstInput) + plan_.inputs.size() + static_cast<size_t>(bucket)] =
        exchange_.wait ? reinterpret_cast<std::byte*>(const_cast<float*>(
                             exchange_.wait(bucket)))  // updates only read their gradients
                       : bases_[kGradients] + plan.offset;
  }
  meet();
  const Window window = window_of(bucket);
  for (const int u : plan.updates) {
    const UpdateStep& update = plan_.updates[static_cast<size_t>(u)];
    run_whole(threads_[static_cast<size_t>(t)]->updates[static_cast<size_t>(u)], t, updating_,
              window);
    if (!update.sums_norms) continue;
    meet();  // all block sums are there
    if (t == 0) sum_norms(update);
    meet();
  }
  meet();
  if (!exchange_.updated) return pack_bucket(t, bucket);
  if (t == 0) {
    exchange_.updated(bucket);
    stages_[static_cast<size_t>(bucket)] = Stage::to_pack;
  }
  meet();
}

void Executor::pack_bucket(int t, int bucket) {
  if (exchange_.gather) {
    if (t == 0) exchange_.gather(bucket);
    meet();
  }
  for (const int k : plan_.buckets[static_cast<size_t>(bucket)].packs)
    run_whole(threads_[static_cast<size_t>(t)]->packs[static_cast<size_t>(k)], t, {});
  if (t == 0) stages_[static_cast<size_t>(bucket)] = Stage::settled;
  meet();
}

}  // namespace tutti
