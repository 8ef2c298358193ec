#include <algorithm>

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/plan/run/team.h"

namespace tutti::plan {

/// A bound within a block of squares would change the bits of the norm.
void TeamExecutor::check_range(int bucket, const ExchangeOutput::Range& range) const {
  const PlanBucket& slice = plan_.buckets[static_cast<size_t>(bucket)];
  constexpr size_t kBlockBytes = kSumBlock * sizeof(float);
  CHECK(range.begin <= range.end, "bucket {}: a range from {} to {}", bucket, range.begin,
        range.end);
  for (const size_t bound : {range.begin, range.end}) {
    const size_t at = slice.offset + bound;
    const bool fits =
        bound == slice.bytes ||
        (bound < slice.bytes &&
         std::ranges::any_of(plan_.variables.parameters, [&](const Variable& variable) {
           return variable.offset <= at && at < variable.offset + variable.desc.bytes() &&
                  (at - variable.offset) % kBlockBytes == 0;
         }));
    CHECK(fits, "bucket {}: a range ends at byte {} of {}, which is not on a block of a parameter",
          bucket, bound, slice.bytes);
  }
}

/// Waits for an exchange. For a bucket, notes where its sum lies and which part this rank updates.
void TeamExecutor::receive(int exchange) {
  const ExchangeOutput got = exchanges_ ? exchanges_->finish(exchange) : ExchangeOutput{};
  const PlanExchange& made = plan_.exchanges[static_cast<size_t>(exchange)];
  if (made.kind != ExchangeKind::gradients) return;
  const int bucket = made.bucket;
  const auto b = static_cast<size_t>(bucket);
  bases_[static_cast<size_t>(plan_.base_of_sum(b))] =
      got.at ? const_cast<std::byte*>(got.at)  // updates only read their gradients
             : bases_[kGradients] + plan_.buckets[b].offset;
  if (ranges_[b] == got.range) return;
  if (got.range) check_range(bucket, *got.range);
  ranges_[b] = got.range;
}

backend::Window TeamExecutor::window_of(const PlanStage& stage) const {
  if (stage.bucket < 0) return {};
  const auto b = static_cast<size_t>(stage.bucket);
  if (!ranges_[b]) return {};
  const std::byte* const slice = bases_[kParameters] + plan_.buckets[b].offset;
  return {slice + ranges_[b]->begin, slice + ranges_[b]->end};
}

void TeamExecutor::update(const backend::StepInfo& step) {
  finish_update();  // stages of the last step are left only if no band reads their weights
  updating_ = step;
  pending_.begin();
  run_stages(false);
}

void TeamExecutor::run_stages(bool may_wait) {
  if ((next_ = pending_.next(exchanges_, may_wait)) < 0) return;
  parallel([&](int t) {
    while (next_ >= 0) {
      run_stage(t, next_);
      if (t == 0) next_ = pending_.next(exchanges_, may_wait);
      meet();
    }
  });
}

/// Called by the whole team after a barrier. Ends in a barrier.
void TeamExecutor::run_stage(int t, int s) {
  const PlanStage& stage = plan_.stages[static_cast<size_t>(s)];
  if (!stage.waits.empty()) {
    if (t == 0) {
      const trace::ScopedSpan span(spans_, waiting_, threads_.front()->lane);
      for (const int e : stage.waits) receive(e);
    }
    meet();
  }
  Thread& thread = *threads_[static_cast<size_t>(t)];
  const backend::Window window = window_of(stage);
  for (const int u : stage.updates)
    run_whole(thread.updates[static_cast<size_t>(u)], t, updating_, window);
  for (const int k : stage.packs) run_whole(thread.packs[static_cast<size_t>(k)], t, {});
  meet();
  if (t != 0) return;
  if (exchanges_)
    for (const int e : stage.starts) exchanges_->start(e);
  pending_.remove(s);
}

}  // namespace tutti::plan
