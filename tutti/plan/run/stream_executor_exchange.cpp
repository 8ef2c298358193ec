#include <fmt/format.h>

#include <cstring>

#include "tutti/base/error.h"
#include "tutti/plan/run/places.h"
#include "tutti/plan/run/stream_executor.h"

namespace tutti::plan {

/// Begins an exchange. What stays on this rank is copied at once, so that nobody waits for it.
void StreamExecutor::start(int exchange) {
  const ExchangeKind kind = plan_.exchanges[static_cast<size_t>(exchange)].kind;
  if (kind == ExchangeKind::gradients) {
    if (gradients_leave()) fetch_gradients(exchange);
    return;
  }
  CHECK(exchanges_, "the plan has exchanges between parts, and nobody makes them");
  for (const OwnCopy& copy : own_copies_[static_cast<size_t>(exchange)])
    stream_->copy(place_address(bases_.data(), tile_.data(), copy.to, 0),
                  place_address(bases_.data(), tile_.data(), copy.from, 0), copy.bytes);
}

/// Begins to copy a bucket's gradients to pinned memory.
void StreamExecutor::fetch_gradients(int exchange) {
  const int bucket = plan_.exchanges[static_cast<size_t>(exchange)].bucket;
  const PlanBucket& slice = plan_.buckets[static_cast<size_t>(bucket)];
  stream_->copy(staged_.data() + slice.offset, gradients_.data() + slice.offset, slice.bytes);
  stream_->record(*outgoing_[static_cast<size_t>(bucket)].copied);
  to_start_.push_back(exchange);
}

/// Starts the exchanges of this pass's gradients, one by one as these arrive. All bands are on the
/// stream by now, so that the device does not wait for the host.
void StreamExecutor::start_exchanges() {
  for (const int e : to_start_) {
    const auto bucket = static_cast<size_t>(plan_.exchanges[static_cast<size_t>(e)].bucket);
    const PlanBucket& slice = plan_.buckets[bucket];
    exchanges_->poll();
    device_.wait(*outgoing_[bucket].copied, outgoing_[bucket].what);
    std::memcpy(host_gradients_ + slice.offset, staged_.data() + slice.offset, slice.bytes);
    exchanges_->start(e);
  }
  to_start_.clear();
}

/// Waits for an exchange, and brings the bucket's sum to the device. Its part of the pinned memory
/// is free, because the gradients that it was for have been sent.
void StreamExecutor::receive(int exchange) {
  const PlanExchange& made = plan_.exchanges[static_cast<size_t>(exchange)];
  if (!gradients_leave() || made.kind == ExchangeKind::parts) return;
  const PlanBucket& slice = plan_.buckets[static_cast<size_t>(made.bucket)];
  const ExchangeOutput got = exchanges_->finish(exchange);
  if (got.range)
    throw ConfigError(
        fmt::format("bucket {}: a rank with a device updates all of a bucket, and not a range of "
                    "it: leave updates in shards and servers out, or set run.device = \"cpu\"",
                    made.bucket));
  std::memcpy(staged_.data() + slice.offset, got.at ? got.at : host_gradients_ + slice.offset,
              slice.bytes);
  stream_->copy(gradients_.data() + slice.offset, staged_.data() + slice.offset, slice.bytes);
}

void StreamExecutor::run_stages(bool may_wait) {
  for (int s = pending_.next(waited_for(), may_wait); s >= 0;
       s = pending_.next(waited_for(), may_wait))
    run_stage(s);
}

void StreamExecutor::run_stage(int s) {
  const PlanStage& stage = plan_.stages[static_cast<size_t>(s)];
  for (const int e : stage.waits) receive(e);
  for (const int u : stage.updates) launch(updates_[static_cast<size_t>(u)]);
  for (const int k : stage.packs) launch(packs_[static_cast<size_t>(k)]);
  pending_.remove(s);
}

}  // namespace tutti::plan
