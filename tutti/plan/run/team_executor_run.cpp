#include <algorithm>
#include <chrono>

#include "tutti/plan/run/team.h"

namespace tutti::plan {
namespace {

// A band may take milliseconds, during which a rank that has asked this one for something would
// wait. One poll costs about a microsecond.
constexpr std::chrono::microseconds kBetweenPolls{200};

/// Kernels count slabs as samples.
backend::StepInfo info_of(backend::StepInfo info, const PlanBand& band) {
  info.batch = band.samples;
  return info;
}

/// Whether the tile is computed before the band's wait.
bool is_early(const PlanBand& band, int64_t first, int64_t size) {
  if (band.early.empty()) return false;
  const auto begin = band.early.begin() + first;
  return std::find(begin, begin + size, false) == begin + size;
}

}  // namespace

void TeamExecutor::run_whole(ReadyStep& ready, int thread, const backend::StepInfo& step,
                             const backend::Window& window) {
  const StepTimer timer(profiling_, ready.run_seconds);
  const trace::ScopedSpan span(spans_, ready.span, threads_[static_cast<size_t>(thread)]->lane);
  for (size_t i = 0; i < ready.in.size(); ++i)
    ready.in[i] = place_address(bases_.data(), nullptr, ready.step->in[i], 0);
  for (size_t i = 0; i < ready.out.size(); ++i)
    ready.out[i] = place_address(bases_.data(), nullptr, ready.step->out[i], 0);
  ready.kernels.front().second->run(
      {.in = ready.in.data(),
       .out = ready.out.data(),
       .workspace = threads_[static_cast<size_t>(thread)]->workspace.data(),
       .thread = thread,
       .threads = plan_.options.threads,
       .step = &step,
       .window = window,
       .team = sharing_.get()});
}

/// The samples that a thread takes through a band together.
struct TeamExecutor::Tile {
  int64_t first = 0, size = 0;
  bool opens = false;  ///< it is the thread's first one
};

void TeamExecutor::run_tile(int t, size_t b, const backend::StepInfo& step, const Tile& tile) {
  Thread& thread = *threads_[static_cast<size_t>(t)];
  for (ReadyStep& ready : thread.bands[b]) {
    const StepTimer timer(profiling_, ready.run_seconds);
    const trace::ScopedSpan span(spans_, ready.span, thread.lane);
    const auto address = [&](const Place& place) {
      return place_address(bases_.data(), thread.tile.data(), place, tile.first);
    };
    std::ranges::transform(ready.step->in, ready.in.begin(), address);
    std::ranges::transform(ready.step->out, ready.out.begin(), address);
    backend::Kernel& kernel = ready.kernel(tile.size);
    void* state = thread.states_of_band.data() + ready.state;
    if (t == 0 && kernel.state_output() >= 0)
      state = ready.out[static_cast<size_t>(kernel.state_output())];
    kernel.run({.in = ready.in.data(),
                .out = ready.out.data(),
                .workspace = thread.workspace.data(),
                .state = state,
                .first = tile.opens,
                .first_sample = tile.first,
                .step = &step});
  }
}

void TeamExecutor::poll_exchanges(std::chrono::microseconds after) {
  if (!exchanges_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - polled_ < after) return;
  polled_ = now;
  exchanges_->poll();
}

void TeamExecutor::wait_before(int t, const PlanBand& band) {
  if (band.waits.empty()) return;
  if (t == 0)
    for (const int e : band.waits) receive(e);
  meet();
}

void TeamExecutor::run_band(int t, size_t b, const backend::StepInfo& info) {
  const PlanBand& band = plan_.bands[b];
  const backend::StepInfo step = info_of(info, band);
  const Share share = share_of(band.samples, t, plan_.options.threads);
  const int tiles = band.whole ? 0 : tiles_of(share.size(), band.tile);
  bool opens = true;
  const auto run_tiles = [&](bool early) {
    for (int i = 0; i < tiles; ++i) {
      const Share tile = share_of(share.size(), i, tiles);
      const int64_t first = share.first + tile.first;
      if (is_early(band, first, tile.size()) != early) continue;
      run_tile(t, b, step, {first, tile.size(), std::exchange(opens, false)});
      if (t == 0) poll_exchanges(early ? std::chrono::microseconds(0) : kBetweenPolls);
    }
  };
  if (!band.early.empty()) run_tiles(true);
  wait_before(t, band);
  if (band.whole)
    run_whole(threads_[static_cast<size_t>(t)]->bands[b].front(), t, info);
  else
    run_tiles(false);
}

void TeamExecutor::finish_band(int t, size_t b, const backend::StepInfo& info) {
  const backend::StepInfo step = info_of(info, plan_.bands[b]);
  const int team = plan_.options.threads;
  Thread& thread = *threads_[static_cast<size_t>(t)];
  for (size_t s = 0; s < thread.bands[b].size(); ++s) {
    ReadyStep& ready = thread.bands[b][s];
    if (ready.step->walk != graph::Walk::reduce) continue;
    const StepTimer timer(profiling_, ready.finish_seconds);
    for (size_t k = 0; k < ready.in.size(); ++k)
      ready.in[k] = ready.step->in_batched[k]
                        ? nullptr
                        : place_address(bases_.data(), nullptr, ready.step->in[k], 0);
    for (size_t k = 0; k < ready.out.size(); ++k)
      ready.out[k] = ready.step->out_batched[k]
                         ? nullptr
                         : place_address(bases_.data(), nullptr, ready.step->out[k], 0);
    backend::Kernel& kernel = *ready.kernels.front().second;
    size_t states = 0;
    for (int other = 0; other < team; ++other) {
      if (share_of(plan_.bands[b].samples, other, team).size() == 0) continue;
      const Thread& owner = *threads_[static_cast<size_t>(other)];
      void* state = owner.states_of_band.data() + owner.bands[b][s].state;
      if (other == 0 && kernel.state_output() >= 0)
        state = ready.out[static_cast<size_t>(kernel.state_output())];
      thread.states[states++] = state;
    }
    kernel.finish({.in = ready.in.data(),
                   .out = ready.out.data(),
                   .states = {thread.states.data(), states},
                   .thread = t,
                   .threads = team,
                   .step = &step});
  }
}

void TeamExecutor::meet() {
  if (exchanges_)
    barrier_.wait([this] { exchanges_->help(); });
  else
    barrier_.wait();
}

void TeamExecutor::run_thread(int t, const backend::StepInfo& step, size_t first, size_t last) {
  for (size_t b = first; b < last; ++b) {
    const PlanBand& band = plan_.bands[b];
    for (const int stage : band.stages)
      if (pending_.contains(stage)) run_stage(t, stage);
    run_band(t, b, step);
    if (band.reduces) {
      meet();
      finish_band(t, b, step);
    }
    meet();
    if (t != 0 || !exchanges_) continue;
    for (const int e : band.starts) exchanges_->start(e);
    poll_exchanges();
  }
}

void TeamExecutor::pack() {
  parallel([this](int t) {
    for (ReadyStep& ready : threads_[static_cast<size_t>(t)]->packs) run_whole(ready, t, {});
  });
}

void TeamExecutor::begin() {
  const bool waits =
      !plan_.waits_at_end.empty() ||
      std::ranges::any_of(plan_.bands, [](const PlanBand& band) { return !band.waits.empty(); });
  CHECK(exchanges_ || !waits, "the plan has exchanges between parts, and nobody makes them");
  for (const int e : plan_.begins) exchanges_->start(e);
}

void TeamExecutor::run_bands(const backend::StepInfo& info, size_t first, size_t last) {
  backend::StepInfo step = info;
  step.batch = plan_.batch;
  parallel([&](int t) { run_thread(t, step, first, last); });
}

void TeamExecutor::end() {
  for (const int e : plan_.waits_at_end) receive(e);
}

}  // namespace tutti::plan
