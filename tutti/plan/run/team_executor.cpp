#include "tutti/plan/run/team_executor.h"

#include <algorithm>
#include <map>

#include "tutti/plan/memory.h"
#include "tutti/plan/run/chosen_kernel.h"
#include "tutti/plan/run/team.h"

namespace tutti::plan {

TeamExecutor::TeamExecutor(const Plan& plan, const backend::Backend& backend, int arenas)
    : Executor(plan), packed_(plan.packed_bytes),
      scalars_(kAlignment * (plan.graph.with_role(graph::Role::scalar).size() + 1)),
      bases_(static_cast<size_t>(plan.base_of_sum(plan.buckets.size()))),
      barrier_(plan.options.threads), sharing_(std::make_unique<Sharing>(*this)), pending_(plan),
      ranges_(plan.buckets.size()) {
  for (int a = 0; a < arenas; ++a) arenas_.emplace_back(plan.arena_bytes);
  use_arena(0);
  bases_[kPacked] = packed_.data();
  bases_[kScalars] = scalars_.data();
  build_steps(backend);
  omp_set_dynamic(0);    // OMP_DYNAMIC would make teams only as large as the load allows
  parallel([](int) {});  // an error about the team's size is thrown here, before the work
}

TeamExecutor::~TeamExecutor() = default;

namespace {

/// Lists the sizes of the tiles into which a thread's share of the batch is cut for a band.
std::vector<int64_t> tile_sizes(const PlanBand& band, int64_t share) {
  std::vector<int64_t> sizes;
  if (band.whole) sizes.push_back(0);
  for (int i = 0, tiles = band.whole ? 0 : tiles_of(share, band.tile); i < tiles; ++i)
    if (const int64_t n = share_of(share, i, tiles).size();
        std::ranges::find(sizes, n) == sizes.end())
      sizes.push_back(n);
  if (sizes.empty()) sizes.push_back(1);  // a thread without samples still takes part in the finish
  return sizes;
}

}  // namespace

/// The kernel of one step, described once for each size of tile, however many threads use it.
struct TeamExecutor::Chosen {
  const backend::Backend& backend;
  const Step& step;
  std::map<int64_t, backend::KernelCandidate> by_size;

  std::unique_ptr<backend::Kernel> make(int64_t samples) {
    const auto at = by_size.find(samples);
    if (at != by_size.end()) return at->second.make();
    return by_size.emplace(samples, chosen_for(backend, step, samples)).first->second.make();
  }
};

/// Bytes that one thread needs at a time.
struct TeamExecutor::Needs {
  size_t workspace = 0;
  size_t band_states = 0;  // in the band that is being prepared
  size_t states = 0;       // in the largest band
};

TeamExecutor::ReadyStep TeamExecutor::make_ready(Chosen& chosen, bool first_thread,
                                                 const std::vector<int64_t>& sizes, Needs& needs) {
  ReadyStep made;
  made.step = &chosen.step;
  made.in.resize(chosen.step.in.size());
  made.out.resize(chosen.step.out.size());
  made.state = needs.band_states;
  for (const int64_t n : sizes) {
    std::unique_ptr<backend::Kernel> kernel = chosen.make(n);
    needs.workspace = std::max(needs.workspace, kernel->workspace_bytes());
    if (!(first_thread && kernel->state_output() >= 0))
      needs.band_states = std::max(needs.band_states, made.state + aligned(kernel->state_bytes()));
    made.kernels.emplace_back(n, std::move(kernel));
  }
  needs.states = std::max(needs.states, needs.band_states);
  return made;
}

void TeamExecutor::build_steps(const backend::Backend& backend) {
  const auto team = static_cast<size_t>(plan_.options.threads);
  for (size_t t = 0; t < team; ++t) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->bands.resize(plan_.bands.size());
  }
  std::vector<Needs> needs(team);
  /// Makes the step's kernels for all threads: sizes(t) gives the tile sizes, list(thread) the list
  /// that receives them.
  const auto make = [&](const Step& step, const auto& sizes, const auto& list) {
    Chosen chosen{backend, step, {}};
    for (size_t t = 0; t < team; ++t)
      list(*threads_[t]).push_back(make_ready(chosen, t == 0, sizes(t), needs[t]));
  };
  const auto whole = [](size_t) { return std::vector<int64_t>{0}; };
  for (const Step& step : plan_.packs)
    make(
        step, whole, [](Thread & thread) -> auto& { return thread.packs; });
  for (size_t b = 0; b < plan_.bands.size(); ++b) {
    const PlanBand& band = plan_.bands[b];
    const auto sizes = [&](size_t t) {
      return tile_sizes(band,
                        share_of(band.samples, static_cast<int>(t), plan_.options.threads).size());
    };
    for (Needs& need : needs) need.band_states = 0;
    for (const Step& step : band.steps)
      make(
          step, sizes, [&](Thread & thread) -> auto& { return thread.bands[b]; });
  }
  for (const Step& update : plan_.updates)
    make(
        update, whole, [](Thread & thread) -> auto& { return thread.updates; });
  for (size_t t = 0; t < team; ++t) {
    threads_[t]->workspace = device::Buffer(needs[t].workspace);
    threads_[t]->states_of_band = device::Buffer(needs[t].states);
    threads_[t]->tile = device::Buffer(plan_.tile_scratch_bytes);
    threads_[t]->states.resize(team);
  }
}

void TeamExecutor::bind(const ReplicaState& replica) {
  const auto bind_base = [&](Base base, void* memory) {
    if (memory) bases_[static_cast<size_t>(base)] = static_cast<std::byte*>(memory);
  };
  bind_base(kParameters, replica.parameters);
  bind_base(kTables, replica.tables);
  bind_base(kStatistics, replica.statistics);
  bind_base(kState, replica.state);
  bind_base(kGradients, replica.gradients);
}

void TeamExecutor::use_arena(int arena) {
  CHECK(arena >= 0 && arena < arenas(), "arena {} of {}", arena, arenas());
  arena_in_use_ = arena;
  bases_[kArena] = arenas_[static_cast<size_t>(arena)].data();
}

void TeamExecutor::bind_input(graph::Value input, const void* data) {
  // Kernels never write inputs; the argument lists are untyped.
  bases_[static_cast<size_t>(plan_.base_of_input(index_of_input(plan_, input)))] =
      static_cast<std::byte*>(const_cast<void*>(data));
}

void TeamExecutor::set_scalar(graph::Value scalar, float value) {
  CHECK(!pending_.any(), "'{}' is set before the update that reads it is over",
        plan_.graph[scalar].name);
  *reinterpret_cast<float*>(scalars_.data() + plan_.place(scalar).offset) = value;
}

const void* TeamExecutor::result(graph::Value v) {
  const Place place = plan_.place(v);
  CHECK(is_stored(plan_, place), "'{}' is not stored", plan_.graph[v].name);
  return address(place);
}

size_t TeamExecutor::memory_bytes() const {
  size_t bytes = packed_.bytes();
  for (const device::Buffer& arena : arenas_) bytes += arena.bytes();
  for (const auto& thread : threads_)
    bytes += thread->tile.bytes() + thread->workspace.bytes() + thread->states_of_band.bytes();
  return bytes;
}

void TeamExecutor::set_profiling(bool on) {
  profiling_ = on;
  take_timings();
}

void TeamExecutor::set_spans(trace::Spans* spans) {
  spans_ = spans;
  if (!spans) return;
  waiting_ = spans->name("wait for other ranks");
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

std::vector<Executor::Timing> TeamExecutor::take_timings() {
  std::vector<Timing> timings;
  Thread& thread = *threads_.front();
  const auto take = [&](ReadyStep& ready) {
    timings.push_back({ready.step->name, ready.step->kernel, std::exchange(ready.run_seconds, 0)});
    if (ready.step->walk == graph::Walk::reduce)
      timings.push_back({ready.step->name + " (finish)", ready.step->kernel,
                         std::exchange(ready.finish_seconds, 0)});
  };
  for (ReadyStep& ready : thread.packs) take(ready);
  for (auto& band : thread.bands)
    for (ReadyStep& ready : band) take(ready);
  for (ReadyStep& ready : thread.updates) take(ready);
  return timings;
}

}  // namespace tutti::plan
