#include "tutti/plan/executor.h"

#include <algorithm>
#include <numeric>

#include "tutti/plan/executor_team.h"

namespace tutti {

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

namespace {

KernelRequest with_samples(const Step& step, int64_t samples) {
  KernelRequest request = step.request;
  for (size_t i = 0; i < request.in.size(); ++i)
    if (step.in_batched[i]) request.in[i].shape[0] = samples;
  for (size_t i = 0; i < request.out.size(); ++i)
    if (step.out_batched[i]) request.out[i].shape[0] = samples;
  return request;
}

std::unique_ptr<Kernel> make_chosen(const Backend& backend, const Step& step, int64_t samples) {
  const std::vector<KernelCandidate> candidates = backend.candidates(with_samples(step, samples));
  const auto at = std::ranges::find_if(
      candidates, [&](const auto& c) { return c.refusal.empty() && c.name == step.kernel; });
  if (at == candidates.end())
    throw DeviceError(
        fmt::format("layer '{}': kernel '{}' was chosen, but refuses a tile of {} samples",
                    step.name, step.kernel, samples));
  return at->make();
}

/// The sizes of the tiles into which a thread's share of the batch is cut for a band.
std::vector<int64_t> tile_sizes(const PlanBand& band, int64_t share) {
  std::vector<int64_t> sizes;
  if (band.whole) sizes.push_back(0);
  for (int i = 0, tiles = band.whole ? 0 : tiles_of(share, band.tile); i < tiles; ++i)
    if (const int64_t n = share_of(share, i, tiles).size();
        std::ranges::find(sizes, n) == sizes.end())
      sizes.push_back(n);
  if (sizes.empty()) sizes.push_back(1);  // a thread without samples still shares in the finish
  return sizes;
}

}  // namespace

Executor::ReadyStep Executor::make_ready(const Backend& backend, const Step& step,
                                         bool first_thread, const std::vector<int64_t>& sizes,
                                         size_t& workspace) {
  ReadyStep made;
  made.step = &step;
  made.in.resize(step.in.size());
  made.out.resize(step.out.size());
  for (const int64_t n : sizes) {
    std::unique_ptr<Kernel> kernel = make_chosen(backend, step, n);
    workspace = std::max(workspace, kernel->workspace_bytes());
    if (made.state.bytes() == 0 && !(first_thread && kernel->state_output() >= 0))
      made.state = Buffer(kernel->state_bytes());
    made.kernels.emplace_back(n, std::move(kernel));
  }
  return made;
}

void Executor::build_steps(const Backend& backend) {
  const int team = plan_.options.threads;
  for (int t = 0; t < team; ++t) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    size_t workspace = 0;
    const auto ready = [&](const Step& step, const std::vector<int64_t>& sizes) {
      return make_ready(backend, step, t == 0, sizes, workspace);
    };
    for (const Step& step : plan_.packs) thread.packs.push_back(ready(step, {0}));
    const int64_t share = share_of(plan_.batch, t, team).size();
    for (const PlanBand& band : plan_.bands) {
      const std::vector<int64_t> sizes = tile_sizes(band, share);
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

void Executor::bind(const ReplicaState& replica) {
  const auto bind_base = [&](Base base, void* memory) {
    if (memory) bases_[static_cast<size_t>(base)] = static_cast<std::byte*>(memory);
  };
  bind_base(kParameters, replica.parameters);
  bind_base(kStatistics, replica.statistics);
  bind_base(kState, replica.state);
  bind_base(kGradients, replica.gradients);
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
