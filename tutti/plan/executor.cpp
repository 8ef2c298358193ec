#include "tutti/plan/executor.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/tree_sum.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds the time until its end to `total` when profiling.
class StepTimer {
 public:
  StepTimer(bool on, double& total)
      : total_(on ? &total : nullptr), start_(on ? Clock::now() : Clock::time_point{}) {}
  ~StepTimer() {
    if (total_) *total_ += std::chrono::duration<double>(Clock::now() - start_).count();
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  double* total_;
  Clock::time_point start_;
};

}  // namespace

/// One thread's kernels for one step: an instance for each tile size that its share of the batch is
/// cut into.
struct Executor::ReadyStep {
  const Step* step = nullptr;
  std::vector<std::pair<int64_t, std::unique_ptr<Kernel>>> kernels;
  std::vector<void*> in, out;  // scratch for the arguments of the call being made
  Buffer state;
  double run_seconds = 0, finish_seconds = 0;
  Spans::Name span = 0;

  Kernel& kernel(int64_t samples) {
    for (auto& [n, k] : kernels)
      if (n == samples) return *k;
    CHECK(false, "{}: no kernel for a tile of {}", step->name, samples);
  }
};

struct Executor::Thread {
  Buffer tile, workspace;
  std::vector<ReadyStep> packs, updates;
  std::vector<std::vector<ReadyStep>> bands;
  std::vector<void*> states;  // scratch for finish
  int lane = 0;               // of the timeline
};

namespace {

/// A plan cuts the work for `wanted` threads; fewer would leave a part of the batch out.
void require_team(int wanted, int got) {
  if (got == wanted) return;
  throw DeviceError(
      fmt::format("OpenMP was asked for a team of {} threads and gives {} (its limit is {}): use "
                  "fewer threads (--threads), or raise OMP_THREAD_LIMIT",
                  wanted, got, omp_get_thread_limit()));
}

}  // namespace

/// fn(thread) on each thread of the team. What one of them throws (an exchange that failed, on
/// thread 0) ends the others at their next barrier, and is thrown here: an exception may not leave
/// a parallel region.
template <class Fn>
void Executor::parallel(Fn fn) {
  const int team = plan_.options.threads;
  if (team == 1) return fn(0);
  std::exception_ptr failure;
#pragma omp parallel num_threads(team)
  {
    try {
      // The rest of a team that is too small would wait for its missing threads for ever.
      require_team(team, omp_get_num_threads());
      fn(omp_get_thread_num());
    } catch (const Barrier::Broken&) {
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
      barrier_.break_up();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Executor::Executor(const Plan& plan, const Backend& backend)
    : plan_(plan), arena_(plan.arena_bytes), packed_(plan.packed_bytes),
      scalars_(64 * (plan.graph.with_role(Role::scalar).size() + 1)),
      bases_(static_cast<size_t>(kFirstInput) + plan.inputs.size() + plan.buckets.size()),
      barrier_(plan.options.threads), shards_(plan.buckets.size()) {
  bases_[kArena] = arena_.data();
  bases_[kPacked] = packed_.data();
  bases_[kScalars] = scalars_.data();
  in_order_.resize(plan.buckets.size());
  std::iota(in_order_.begin(), in_order_.end(), 0);
  std::ranges::stable_sort(in_order_, {}, [&](int bucket) {
    return plan.buckets[static_cast<size_t>(bucket)].first_use;
  });
  stages_.resize(plan.buckets.size());
  build_steps(backend);
  omp_set_dynamic(0);    // which OMP_DYNAMIC sets: teams as large as the load allows
  parallel([](int) {});  // so that a team that is refused is refused here, before the work
}

Executor::~Executor() = default;

void Executor::build_steps(const Backend& backend) {
  const int team = plan_.options.threads;
  for (int t = 0; t < team; ++t) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    size_t workspace = 0;
    const auto ready = [&](const Step& step, std::vector<int64_t> sizes) {
      ReadyStep made;
      made.step = &step;
      made.in.resize(step.in.size());
      made.out.resize(step.out.size());
      for (const int64_t n : sizes) {
        KernelRequest request = step.request;
        for (size_t i = 0; i < request.in.size(); ++i)
          if (step.in_batched[i]) request.in[i].shape[0] = n;
        for (size_t i = 0; i < request.out.size(); ++i)
          if (step.out_batched[i]) request.out[i].shape[0] = n;
        const std::vector<KernelCandidate> candidates = backend.candidates(request);
        auto at = std::ranges::find_if(
            candidates, [&](const auto& c) { return c.refusal.empty() && c.name == step.kernel; });
        if (at == candidates.end())
          throw DeviceError(
              fmt::format("layer '{}': kernel '{}' was chosen, but refuses a tile of {} samples",
                          step.name, step.kernel, n));
        std::unique_ptr<Kernel> kernel = at->make();
        workspace = std::max(workspace, kernel->workspace_bytes());
        if (made.state.bytes() == 0 && !(t == 0 && kernel->state_output() >= 0))
          made.state = Buffer(kernel->state_bytes());
        made.kernels.emplace_back(n, std::move(kernel));
      }
      return made;
    };
    for (const Step& step : plan_.packs) thread.packs.push_back(ready(step, {0}));
    const int64_t share = share_of(plan_.batch, t, team).size();
    for (const PlanBand& band : plan_.bands) {
      std::vector<int64_t> sizes;
      if (band.whole) sizes.push_back(0);
      for (int i = 0, tiles = band.whole ? 0 : tiles_of(share, band.tile); i < tiles; ++i)
        if (const int64_t n = share_of(share, i, tiles).size();
            std::ranges::find(sizes, n) == sizes.end())
          sizes.push_back(n);
      if (sizes.empty()) sizes.push_back(1);  // a thread without samples still shares in the finish
      std::vector<ReadyStep>& steps = thread.bands.emplace_back();
      for (const Step& step : band.steps) steps.push_back(ready(step, sizes));
    }
    for (const UpdateStep& update : plan_.updates)
      thread.updates.push_back(ready(update.step, {0}));
    thread.workspace = Buffer(workspace);
    thread.tile = Buffer(plan_.tile_scratch_bytes);
    thread.states.resize(static_cast<size_t>(team));
  }
}

void Executor::bind(Base base, void* memory) {
  bases_[static_cast<size_t>(base)] = static_cast<std::byte*>(memory);
}

void Executor::bind_input(Value input, const void* data) {
  const auto at = std::ranges::find(plan_.inputs, input);
  CHECK(at != plan_.inputs.end(), "value {} is not an input", input.id);
  // Kernels never write inputs; the argument lists are untyped.
  bases_[static_cast<size_t>(kFirstInput) + static_cast<size_t>(at - plan_.inputs.begin())] =
      static_cast<std::byte*>(const_cast<void*>(data));
}

void Executor::set_scalar(Value scalar, float value) {
  *reinterpret_cast<float*>(scalars_.data() + plan_.place(scalar).offset) = value;
}

const void* Executor::result(Value v) const {
  const Place place = plan_.place(v);
  CHECK(place.base == kArena, "'{}' is not stored", plan_.graph[v].name);
  return arena_.data() + place.offset;
}

size_t Executor::memory_bytes() const {
  size_t bytes = arena_.bytes() + packed_.bytes();
  for (const auto& thread : threads_) {
    bytes += thread->tile.bytes() + thread->workspace.bytes();
    for (const auto& band : thread->bands)
      for (const ReadyStep& ready : band) bytes += ready.state.bytes();
  }
  return bytes;
}

namespace {

inline void* address(std::byte* const* bases, std::byte* tile, const Place& place,
                     int64_t first_sample) {
  if (place.base == kTile) return tile + place.offset;
  return bases[place.base] + place.offset + place.stride * static_cast<size_t>(first_sample);
}

}  // namespace

void Executor::run_whole(ReadyStep& ready, int thread, const StepInfo& step, const Window& window) {
  const StepTimer timer(profiling_, ready.run_seconds);
  const ScopedSpan span(spans_, ready.span, threads_[static_cast<size_t>(thread)]->lane);
  for (size_t i = 0; i < ready.in.size(); ++i)
    ready.in[i] = address(bases_.data(), nullptr, ready.step->in[i], 0);
  for (size_t i = 0; i < ready.out.size(); ++i)
    ready.out[i] = address(bases_.data(), nullptr, ready.step->out[i], 0);
  ready.kernels.front().second->run(
      {.in = ready.in.data(),
       .out = ready.out.data(),
       .workspace = threads_[static_cast<size_t>(thread)]->workspace.data(),
       .part = thread,
       .parts = plan_.options.threads,
       .step = &step,
       .window = window});
}

void Executor::run_band(int t, size_t b, const StepInfo& step) {
  Thread& thread = *threads_[static_cast<size_t>(t)];
  const PlanBand& band = plan_.bands[b];
  std::vector<ReadyStep>& steps = thread.bands[b];
  if (band.whole) return run_whole(steps.front(), t, step);
  const Share share = share_of(plan_.batch, t, plan_.options.threads);
  const int tiles = tiles_of(share.size(), band.tile);
  for (int i = 0; i < tiles; ++i) {
    const Share tile = share_of(share.size(), i, tiles);
    const int64_t first = share.first + tile.first;
    for (ReadyStep& ready : steps) {
      const StepTimer timer(profiling_, ready.run_seconds);
      const ScopedSpan span(spans_, ready.span, thread.lane);
      for (size_t k = 0; k < ready.in.size(); ++k)
        ready.in[k] = address(bases_.data(), thread.tile.data(), ready.step->in[k], first);
      for (size_t k = 0; k < ready.out.size(); ++k)
        ready.out[k] = address(bases_.data(), thread.tile.data(), ready.step->out[k], first);
      Kernel& kernel = ready.kernel(tile.size());
      void* state = ready.state.data();
      if (t == 0 && kernel.state_output() >= 0)
        state = ready.out[static_cast<size_t>(kernel.state_output())];
      kernel.run({.in = ready.in.data(),
                  .out = ready.out.data(),
                  .workspace = thread.workspace.data(),
                  .state = state,
                  .first = i == 0,
                  .first_sample = first,
                  .step = &step});
    }
  }
}

void Executor::finish_band(int t, size_t b, const StepInfo& step) {
  const int team = plan_.options.threads;
  Thread& thread = *threads_[static_cast<size_t>(t)];
  for (size_t s = 0; s < thread.bands[b].size(); ++s) {
    ReadyStep& ready = thread.bands[b][s];
    if (ready.step->walk != Walk::reduce) continue;
    const StepTimer timer(profiling_, ready.finish_seconds);
    for (size_t k = 0; k < ready.in.size(); ++k)
      ready.in[k] = ready.step->in_batched[k]
                        ? nullptr
                        : address(bases_.data(), nullptr, ready.step->in[k], 0);
    for (size_t k = 0; k < ready.out.size(); ++k)
      ready.out[k] = ready.step->out_batched[k]
                         ? nullptr
                         : address(bases_.data(), nullptr, ready.step->out[k], 0);
    Kernel& kernel = *ready.kernels.front().second;
    size_t states = 0;
    for (int other = 0; other < team; ++other) {
      if (share_of(plan_.batch, other, team).size() == 0) continue;
      void* state = threads_[static_cast<size_t>(other)]->bands[b][s].state.data();
      if (other == 0 && kernel.state_output() >= 0)
        state = ready.out[static_cast<size_t>(kernel.state_output())];
      thread.states[states++] = state;
    }
    kernel.finish({.in = ready.in.data(),
                   .out = ready.out.data(),
                   .states = {thread.states.data(), states},
                   .part = t,
                   .parts = team,
                   .step = &step});
  }
}

void Executor::run_thread(int t, const StepInfo& step) {
  auto next = in_order_.begin();
  for (size_t b = 0; b < plan_.bands.size(); ++b) {
    for (; next != in_order_.end() &&
           plan_.buckets[static_cast<size_t>(*next)].first_use <= static_cast<int>(b);
         ++next)
      while (stages_[static_cast<size_t>(*next)] != Stage::settled) settle_bucket(t, *next);
    run_band(t, b, step);
    if (plan_.bands[b].reduces) {
      barrier_.wait();
      finish_band(t, b, step);
    }
    barrier_.wait();
    if (t != 0) continue;
    if (exchange_.ready)
      for (const int bucket : plan_.bands[b].ready) exchange_.ready(bucket);
    if (exchange_.poll) exchange_.poll();
  }
}

void Executor::pack() {
  parallel([this](int t) {
    for (ReadyStep& ready : threads_[static_cast<size_t>(t)]->packs) run_whole(ready, t, {});
  });
}

void Executor::run(const StepInfo& info) {
  StepInfo step = info;
  step.batch = plan_.batch;
  parallel([&](int t) { run_thread(t, step); });
}

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
  auto* const sums = static_cast<float*>(address(bases_.data(), nullptr, update.step.out[0], 0));
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
      barrier_.wait();
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
  barrier_.wait();
  const Window window = window_of(bucket);
  for (const int u : plan.updates) {
    const UpdateStep& update = plan_.updates[static_cast<size_t>(u)];
    run_whole(threads_[static_cast<size_t>(t)]->updates[static_cast<size_t>(u)], t, updating_,
              window);
    if (!update.sums_norms) continue;
    barrier_.wait();  // all block sums are there
    if (t == 0) sum_norms(update);
    barrier_.wait();
  }
  barrier_.wait();
  if (!exchange_.updated) return pack_bucket(t, bucket);
  if (t == 0) {
    exchange_.updated(bucket);
    stages_[static_cast<size_t>(bucket)] = Stage::to_pack;
  }
  barrier_.wait();
}

void Executor::pack_bucket(int t, int bucket) {
  if (exchange_.gather) {
    if (t == 0) exchange_.gather(bucket);
    barrier_.wait();
  }
  for (const int k : plan_.buckets[static_cast<size_t>(bucket)].packs)
    run_whole(threads_[static_cast<size_t>(t)]->packs[static_cast<size_t>(k)], t, {});
  if (t == 0) stages_[static_cast<size_t>(bucket)] = Stage::settled;
  barrier_.wait();
}

void Executor::set_profiling(bool on) {
  profiling_ = on;
  take_timings();
}

void Executor::set_spans(Spans* spans) {
  spans_ = spans;
  if (!spans) return;
  waiting_ = spans->name("wait for gradients");
  for (size_t t = 0; t < threads_.size(); ++t) {
    Thread& thread = *threads_[t];
    thread.lane = spans->lane(fmt::format("thread {}", t));
    const auto name = [&](ReadyStep& ready) {
      ready.span = spans->name(ready.step->name + " by " + ready.step->kernel);
    };
    std::ranges::for_each(thread.packs, name);
    for (auto& band : thread.bands) std::ranges::for_each(band, name);
    std::ranges::for_each(thread.updates, name);
  }
}

std::vector<Executor::Timing> Executor::take_timings() {
  std::vector<Timing> timings;
  Thread& thread = *threads_.front();
  const auto take = [&](ReadyStep& ready) {
    timings.push_back({ready.step->name, ready.step->kernel, std::exchange(ready.run_seconds, 0)});
    if (ready.step->walk == Walk::reduce)
      timings.push_back({ready.step->name + " (finish)", ready.step->kernel,
                         std::exchange(ready.finish_seconds, 0)});
  };
  for (ReadyStep& ready : thread.packs) take(ready);
  for (auto& band : thread.bands)
    for (ReadyStep& ready : band) take(ready);
  for (ReadyStep& ready : thread.updates) take(ready);
  return timings;
}

}  // namespace tutti
