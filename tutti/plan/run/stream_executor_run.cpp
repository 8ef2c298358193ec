#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/plan/run/places.h"
#include "tutti/plan/run/step_timer.h"
#include "tutti/plan/run/stream_executor.h"

namespace tutti::plan {

void StreamExecutor::launch(ReadyStep& ready) {
  const StepTimer timer(profiling_, ready.seconds);
  const trace::ScopedSpan span(spans_, ready.span, lane_);
  const auto address = [this](const Place& place) {
    return place_address(bases_.data(), tile_.data(), place, 0);
  };
  std::ranges::transform(ready.step->in, ready.in.begin(), address);
  std::ranges::transform(ready.step->out, ready.out.begin(), address);
  ready.kernel->run({.in = ready.in.data(),
                     .out = ready.out.data(),
                     .workspace = workspace_.data(),
                     .stream = stream_.get(),
                     .numbers = numbers_->data() + ready.numbers});
  if (profiling_) wait_for_all(ready.step->name);
}

/// Notes before the work is put on the stream that it changes what it changes.
void StreamExecutor::note_written(const Touched& steps) {
  for (const Base base : {kParameters, kTables, kStatistics, kState})
    if (steps.changed[static_cast<size_t>(base)]) mirrors_.note_written(base);
}

void StreamExecutor::pack() {
  mirrors_.note_host_changes();
  mirrors_.upload(*stream_);
  if (numbers_->bytes() > updates_end_) {  // no step changes them
    std::byte* const to = numbers_->open();
    for (const ReadyStep& ready : packs_) ready.kernel->write_numbers({}, to + ready.numbers);
    numbers_->send(*stream_, updates_end_, numbers_->bytes());
  }
  for (ReadyStep& ready : packs_) launch(ready);
}

/// Inputs of updates alone are sent with an update, because they may hold values of several passes.
void StreamExecutor::send_inputs(bool of_pass) {
  const auto is_sent = [&](const Input& input) {
    return input.in_pass == of_pass && input.memory.bytes() > 0;
  };
  if (std::ranges::none_of(inputs_, is_sent)) return;
  if (inputs_under_way_ && !device_.done(*inputs_sent_))
    device_.wait(*inputs_sent_, "the copy of the last batch");
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (!is_sent(input)) continue;
    CHECK(input.host, "input '{}' is not bound", plan_.graph[plan_.inputs[i]].name);
    std::memcpy(input.pinned.data(), input.host, input.pinned.bytes());
    stream_->copy(input.memory.data(), input.pinned.data(), input.pinned.bytes());
  }
  stream_->record(*inputs_sent_);
  inputs_under_way_ = true;
}

/// Sends scalars, too.
void StreamExecutor::send_pass_numbers(const backend::StepInfo& info, size_t first, size_t last) {
  std::byte* const to = numbers_->open();
  for (size_t b = first; b < last; ++b) {
    const PlanBand& band = plan_.bands[b];
    backend::StepInfo step = info;
    step.batch = band.whole ? plan_.batch : band.samples;  // kernels count slabs as samples
    for (const ReadyStep& ready : bands_[b]) ready.kernel->write_numbers(step, to + ready.numbers);
  }
  std::memcpy(to + scalars_begin_, scalars_.data(), scalars_.size());
  numbers_->send(*stream_, 0, scalars_end_);
}

void StreamExecutor::send_update_numbers() {
  std::byte* const to = numbers_->open();
  for (const ReadyStep& ready : updates_)
    ready.kernel->write_numbers(updating_, to + ready.numbers);
  std::memcpy(to + scalars_begin_, scalars_.data(), scalars_.size());
  numbers_->send(*stream_, scalars_begin_, updates_end_);
}

void StreamExecutor::run_bands(const backend::StepInfo& step, size_t first, size_t last) {
  mirrors_.upload(*stream_);
  send_inputs(true);
  send_pass_numbers(step, first, last);
  note_written(pass_);
  for (size_t b = first; b < last; ++b) {
    const PlanBand& band = plan_.bands[b];
    for (const int stage : band.stages)
      if (pending_.contains(stage)) run_stage(stage);
    for (ReadyStep& ready : bands_[b]) launch(ready);
    if (exchanges_)
      for (const int e : band.starts) fetch_gradients(e);
  }
  start_exchanges();
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
  if (!exchanges_) return;
  const auto bucket = static_cast<size_t>(plan_.exchanges[static_cast<size_t>(exchange)].bucket);
  const PlanBucket& slice = plan_.buckets[bucket];
  const ExchangeOutput got = exchanges_->finish(exchange);
  if (got.range)
    throw ConfigError(
        fmt::format("bucket {}: a rank with a device updates all of a bucket, and not a range of "
                    "it: leave updates in shards and servers out, or set run.device = \"cpu\"",
                    bucket));
  std::memcpy(staged_.data() + slice.offset, got.at ? got.at : host_gradients_ + slice.offset,
              slice.bytes);
  stream_->copy(gradients_.data() + slice.offset, staged_.data() + slice.offset, slice.bytes);
}

void StreamExecutor::update(const backend::StepInfo& step) {
  finish_update();  // stages of the last step are left only if no band reads their weights
  updating_ = step;
  pending_.begin();
  mirrors_.upload(*stream_);
  send_inputs(false);
  send_update_numbers();
  run_stages(false);
}

void StreamExecutor::run_stages(bool may_wait) {
  for (int s = pending_.next(exchanges_, may_wait); s >= 0; s = pending_.next(exchanges_, may_wait))
    run_stage(s);
}

void StreamExecutor::run_stage(int s) {
  const PlanStage& stage = plan_.stages[static_cast<size_t>(s)];
  for (const int e : stage.waits) receive(e);
  note_written(update_);
  for (const int u : stage.updates) launch(updates_[static_cast<size_t>(u)]);
  for (const int k : stage.packs) launch(packs_[static_cast<size_t>(k)]);
  pending_.remove(s);
}

}  // namespace tutti::plan
