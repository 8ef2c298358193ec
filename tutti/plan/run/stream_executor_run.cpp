#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/run/places.h"
#include "tutti/plan/run/step_timer.h"
#include "tutti/plan/run/stream_executor.h"

namespace tutti::plan {
namespace {

constexpr int kSeenBefore = 2;  // units that ran before one like them is recorded

}  // namespace

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
                     .numbers = numbers_.data() + ready.numbers});
  if (profiling_) wait_for_all(ready.step->name);
}

/// Notes before the work is put on the stream that it changes what it changes.
void StreamExecutor::note_written(const Touched& steps) {
  for (const Base base : {kParameters, kTables, kStatistics, kState})
    if (steps.changed[static_cast<size_t>(base)]) mirrors_.note_written(base);
}

void StreamExecutor::pack() {
  put_deferred();
  mirrors_.note_host_changes();
  mirrors_.upload(*stream_);
  if (here_) here_->begin(*stream_);
  stream_->copy(numbers_.data() + updates_end_, pack_numbers_.data(), pack_numbers_.bytes());
  for (ReadyStep& ready : packs_) launch(ready);
}

/// Copies the inputs of passes, or of updates alone, which may hold values of several passes.
void StreamExecutor::copy_inputs(bool of_pass, std::byte* to) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (!input.used || input.in_pass != of_pass) continue;
    CHECK(input.host, "input '{}' is not bound", plan_.graph[plan_.inputs[i]].name);
    std::memcpy(to + input.offset, input.host, input.bytes);
  }
}

void StreamExecutor::write_pass_numbers(const backend::StepInfo& info, size_t first, size_t last) {
  std::byte* const to = slots_->numbers();
  for (size_t b = first; b < last; ++b) {
    const PlanBand& band = plan_.bands[b];
    backend::StepInfo step = info;
    step.batch = band.whole ? plan_.batch : band.samples;  // kernels count slabs as samples
    for (const ReadyStep& ready : bands_[b]) ready.kernel->write_numbers(step, to + ready.numbers);
  }
}

/// Writes scalars, too.
void StreamExecutor::write_update_numbers() {
  std::byte* const to = slots_->numbers();
  std::memcpy(to + scalars_begin_, scalars_.data(), scalars_.size());
  for (const ReadyStep& ready : updates_)
    ready.kernel->write_numbers(updating_, to + ready.numbers);
}

void StreamExecutor::take_slot() {
  slots_->turn();
  CHECK(std::ranges::none_of(unread_,
                             [&](const Unread& one) { return one.slot == slots_->current(); }),
        "a pass overwrites readings that nobody has taken");
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].in_pass)
      bases_[static_cast<size_t>(plan_.base_of_input(i))] =
          slots_->device_inputs() + inputs_[i].offset;
}

void StreamExecutor::run_bands(const backend::StepInfo& step, size_t first, size_t last) {
  put_deferred();
  take_slot();
  mirrors_.upload(*stream_);
  copy_inputs(true, slots_->pass_inputs());
  slots_->send_inputs(*stream_);
  write_pass_numbers(step, first, last);
  note_written(pass_);
  slot_has_pass_ = true;
  if (last == plan_.bands.size()) ++runs_;
  if (watches_ && last == plan_.bands.size()) unread_.push_back({slots_->current(), false});
  Unit unit{.first = first, .last = last, .folds = {}};
  if (here_ && last == plan_.bands.size()) unit.folds = exchanges_->folds();
  const bool whole = first == 0 && last == plan_.bands.size();
  const bool looks = here_ && last == plan_.bands.size() && exchanges_->looks();
  if (whole && runs_ == runs_per_update_ && !plan_.updates.empty() && !gradients_leave() && !looks)
    deferred_ = std::move(unit);
  else
    put(unit);
  if (looks) exchanges_->look(gradients_here(bases_[kGradients]));
  start_exchanges();
}

void StreamExecutor::update(const backend::StepInfo& step) {
  finish_update();  // stages of the last step are left only if no band reads their weights
  updating_ = step;
  if (!slot_has_pass_) {
    put_deferred();
    take_slot();
  }
  mirrors_.upload(*stream_);
  copy_inputs(false, slots_->update_inputs());
  write_update_numbers();
  note_written(update_);
  slot_has_pass_ = false;
  runs_ = 0;
  if (watches_ && !watched_in_update_.empty()) unread_.push_back({slots_->current(), true});
  if (here_ && exchanges_->looks())
    exchanges_->look_at_sum(gradients_here(here_->arena(exchanges_->sum(), *stream_)));
  Unit unit = deferred_ ? std::move(*deferred_) : Unit{};
  deferred_.reset();
  unit.update = true;
  put(unit);
}

void StreamExecutor::put_deferred() {
  if (!deferred_) return;
  const Unit unit = std::move(*deferred_);
  deferred_.reset();
  put(unit);
}

/// Returns all memory that the unit's work depends on, besides what never changes.
std::vector<const void*> StreamExecutor::key_of(const Unit& unit) const {
  std::vector<const void*> key(bases_.begin(), bases_.end());
  key.push_back(reinterpret_cast<const void*>(uintptr_t{unit.update}));
  key.push_back(reinterpret_cast<const void*>(unit.first));
  key.push_back(reinterpret_cast<const void*>(unit.last));
  key.push_back(reinterpret_cast<const void*>(static_cast<uintptr_t>(slots_->current())));
  for (const GradientFold& fold : unit.folds) key.insert(key.end(), {fold.into, fold.from});
  return key;
}

void StreamExecutor::put(const Unit& unit) {
  if (here_ && unit.update) bind_sums(here_->arena(exchanges_->sum(), *stream_));
  // The host waits for gradients that leave within the unit.
  if (!records_ || profiling_ || spans_ || gradients_leave()) {
    put_now(unit);
  } else {
    Recorded& recorded = recordings_[key_of(unit)];
    if (!recorded.recording && recorded.seen++ < kSeenBefore) {
      put_now(unit);
    } else {
      if (!recorded.recording) {
        stream_->begin_recording();
        try {
          put_now(unit);
        } catch (...) {
          const std::exception_ptr failure = std::current_exception();
          try {
            stream_->end_recording();
          } catch (const std::exception&) {
            // The first failure says more.
          }
          std::rethrow_exception(failure);
        }
        recorded.recording = stream_->end_recording();
      }
      stream_->replay(*recorded.recording);
    }
  }
  slots_->close(*stream_);
}

void StreamExecutor::put_now(const Unit& unit) {
  if (unit.has_pass()) put_pass(unit);
  if (unit.update) put_update(unit);
}

void StreamExecutor::put_pass(const Unit& unit) {
  stream_->copy(numbers_.data(), slots_->numbers(), unit.update ? updates_end_ : scalars_begin_);
  if (unit.first == 0)
    for (const int e : plan_.begins) start(e);
  for (size_t b = unit.first; b < unit.last; ++b) {
    const PlanBand& band = plan_.bands[b];
    for (const int stage : band.stages)
      if (pending_.contains(stage)) run_stage(stage);
    for (ReadyStep& ready : bands_[b]) launch(ready);
    for (const int e : band.starts) start(e);
  }
  if (unit.last < plan_.bands.size()) return;
  if (!here_) return copy_watched(watched_in_pass_, slots_->results() + kPassResults);
  put_look(unit);
  for (const GradientFold& fold : unit.folds)
    here_->add(here_->arena(fold.into, *stream_), here_->arena(fold.from, *stream_), *stream_);
}

/// Returns whether the unit's update is with the gradients of the unit's pass alone.
bool StreamExecutor::updates_by_pass(const Unit& unit) {
  return unit.has_pass() && unit.update && unit.folds.empty() &&
         here_->arena(exchanges_->sum(), *stream_) == bases_[kGradients];
}

/// Looks at the gradients of a pass, and copies what is found and watched.
void StreamExecutor::put_look(const Unit& unit) {
  std::vector<const float*> watched;
  for (const graph::Value v : watched_in_pass_)
    watched.push_back(reinterpret_cast<const float*>(bases_[kArena] + plan_.place(v).offset));
  if (updates_by_pass(unit))
    here_->look_and_stop(bases_[kGradients], watched, scalars_there(), *stream_);
  else
    here_->look(bases_[kGradients], watched, *stream_);
  stream_->copy(slots_->results(), here_->found(), kPassResults + watched.size() * sizeof(float));
}

void StreamExecutor::put_update(const Unit& unit) {
  if (!unit.has_pass())
    stream_->copy(numbers_.data() + scalars_begin_, slots_->numbers() + scalars_begin_,
                  updates_end_ - scalars_begin_);
  stream_->copy(update_inputs_.data(), slots_->update_inputs(), update_inputs_.bytes());
  if (here_) stop_update(unit);
  pending_.begin();
  run_stages(false);
  copy_watched(watched_in_update_, slots_->results() + kUpdateResults);
}

/// Keeps an update from changing the weights, if a gradient was not finite.
void StreamExecutor::stop_update(const Unit& unit) {
  if (!updates_by_pass(unit))
    here_->stop({here_->arena(exchanges_->sum(), *stream_), here_->bytes()}, scalars_there(),
                *stream_);
  for (const graph::Value v : left_to_updates_) {
    void* const at = place_address(bases_.data(), tile_.data(), plan_.place(v), 0);
    here_->stop({static_cast<std::byte*>(at), aligned(plan_.desc(v).bytes())}, {}, *stream_);
  }
}

/// Returns a copy of an arena of gradients in memory of the host, valid until the next call.
const std::byte* StreamExecutor::gradients_here(const std::byte* arena) {
  if (staged_.bytes() == 0)
    staged_ = device::Memory(device_, plan_.variables.trained_bytes, device::MemoryKind::pinned);
  stream_->copy(staged_.data(), arena, staged_.bytes());
  wait_for_all("gradients that the host looks at");
  return staged_.data();
}

void StreamExecutor::copy_watched(const std::vector<graph::Value>& values, std::byte* to) {
  for (const graph::Value v : values) {
    stream_->copy(to, bases_[kArena] + plan_.place(v).offset, sizeof(float));
    to += sizeof(float);
  }
}

}  // namespace tutti::plan
