#include <algorithm>

#include "tutti/base/numeric/tree_sum.h"
#include "tutti/plan/executor_team.h"

namespace tutti::plan {

/// A bound within a block of squares would change the bits of the norm.
void Executor::check_range(int bucket, const ExchangeOutput::Range& range) const {
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
void Executor::receive(int exchange) {
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

backend::Window Executor::window_of(const PlanStage& stage) const {
  if (stage.bucket < 0) return {};
  const auto b = static_cast<size_t>(stage.bucket);
  if (!ranges_[b]) return {};
  const std::byte* const slice = bases_[kParameters] + plan_.buckets[b].offset;
  return {slice + ranges_[b]->begin, slice + ranges_[b]->end};
}

void Executor::update(const backend::StepInfo& step) {
  settle();  // stages of the last step are left only if no band reads their weights
  updating_ = step;
  std::ranges::fill(pending_, char{1});
  run_stages(false);
}

void Executor::settle() { run_stages(true); }

/// Returns the first stage that can run without waiting. If there is none: the first pending stage
/// with `may_wait`, otherwise -1. So a rank that waits has begun everything that others need to get
/// there, and ranks cannot wait for each other.
int Executor::next_stage(bool may_wait) {
  int first = -1;
  for (int s = 0; s < static_cast<int>(plan_.stages.size()); ++s) {
    if (!is_pending(s)) continue;
    const PlanStage& stage = plan_.stages[static_cast<size_t>(s)];
    if (first < 0) first = s;
    if (std::ranges::none_of(stage.after, [this](int before) { return is_pending(before); }) &&
        (!exchanges_ ||
         std::ranges::all_of(stage.waits, [this](int e) { return exchanges_->done(e); })))
      return s;
  }
  return may_wait ? first : -1;
}

void Executor::run_stages(bool may_wait) {
  if ((next_ = next_stage(may_wait)) < 0) return;
  parallel([&](int t) {
    while (next_ >= 0) {
      run_stage(t, next_);
      if (t == 0) next_ = next_stage(may_wait);
      meet();
    }
  });
}

/// Called by the whole team after a barrier. Ends in a barrier.
void Executor::run_stage(int t, int s) {
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
  pending_[static_cast<size_t>(s)] = 0;
}

}  // namespace tutti::plan
