#include "tutti/plan/run/stream_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/run/chosen_kernel.h"
#include "tutti/plan/run/places.h"

namespace tutti::plan {

StreamExecutor::StreamExecutor(const Plan& plan, const backend::Backend& backend, int arenas)
    : Executor(plan), device_(*backend.device()), stream_(device_.make_stream("compute")),
      reached_(device_.make_event()), inputs_sent_(device_.make_event()),
      mirrors_(*backend.mirrors(), plan.variables),
      bases_(static_cast<size_t>(plan.base_of_sum(plan.buckets.size()))),
      scalars_(kAlignment * (plan.graph.with_role(graph::Role::scalar).size() + 1)),
      pending_(plan) {
  require_whole_batch();
  touch_bases();
  build_steps(backend);
  build_memory(arenas);
}

StreamExecutor::~StreamExecutor() {
  try {
    wait_for_all("the last work of an executor");
  } catch (const std::exception&) {
    // The call that met the failure has reported it, or the run ends by another error.
  }
}

void StreamExecutor::require_whole_batch() const {
  CHECK(plan_.options.threads == 1, "a plan of {} threads for a device", plan_.options.threads);
  for (const PlanBand& band : plan_.bands)
    if (!band.whole && band.tile < band.samples)
      throw ConfigError(
          fmt::format("a tile has {} of {} samples, and on a device it has all: leave "
                      "plan.tile_bytes at 0",
                      band.tile, band.samples));
  for (const PlanExchange& exchange : plan_.exchanges) {
    if (exchange.kind == ExchangeKind::gradients) continue;
    const graph::Node& node = plan_.graph.nodes()[static_cast<size_t>(exchange.node)];
    throw ConfigError(
        fmt::format("'{}': ranks with devices exchange gradients alone, and not '{}': let each "
                    "rank have whole samples, all layers and whole updates, or set run.device = "
                    "\"cpu\"",
                    node.name, node.op->name()));
  }
}

void StreamExecutor::Touched::add(const Step& step) {
  for (size_t i = 0; i < step.in.size(); ++i) {
    const auto base = static_cast<size_t>(step.in[i].base);
    used[base] = true;
    if (step.request.op->mutates(static_cast<int>(i))) changed[base] = true;
  }
  for (const Place& place : step.out)
    used[static_cast<size_t>(place.base)] = changed[static_cast<size_t>(place.base)] = true;
}

void StreamExecutor::touch_bases() {
  for (Touched* const steps : {&pass_, &update_}) {
    steps->used.resize(bases_.size());
    steps->changed.resize(bases_.size());
  }
  for (const PlanBand& band : plan_.bands)
    for (const Step& step : band.steps) pass_.add(step);
  for (const auto* list : {&plan_.packs, &plan_.updates})
    for (const Step& step : *list) update_.add(step);
}

StreamExecutor::ReadyStep StreamExecutor::make_ready(const backend::Backend& backend,
                                                     const Step& step, int64_t samples) {
  ReadyStep made;
  made.step = &step;
  made.kernel = chosen_for(backend, step, samples).make();
  made.in.resize(step.in.size());
  made.out.resize(step.out.size());
  return made;
}

void StreamExecutor::build_steps(const backend::Backend& backend) {
  for (const Step& step : plan_.packs) packs_.push_back(make_ready(backend, step, 0));
  for (const PlanBand& band : plan_.bands) {
    std::vector<ReadyStep>& ready = bands_.emplace_back();
    for (const Step& step : band.steps)
      ready.push_back(make_ready(backend, step, band.whole ? 0 : band.samples));
  }
  for (const Step& step : plan_.updates) updates_.push_back(make_ready(backend, step, 0));
}

template <class Fn>
void StreamExecutor::for_each_step(Fn fn) {
  std::ranges::for_each(packs_, fn);
  for (std::vector<ReadyStep>& band : bands_) std::ranges::for_each(band, fn);
  std::ranges::for_each(updates_, fn);
}

void StreamExecutor::build_numbers() {
  size_t bytes = 0;
  const auto add = [&](ReadyStep& ready) {
    ready.numbers = bytes;
    bytes += aligned(ready.kernel->number_bytes());
  };
  for (std::vector<ReadyStep>& band : bands_) std::ranges::for_each(band, add);
  scalars_begin_ = bytes;
  scalars_end_ = bytes += scalars_.size();
  std::ranges::for_each(updates_, add);
  updates_end_ = bytes;
  std::ranges::for_each(packs_, add);
  numbers_ = std::make_unique<NumberBlock>(device_, bytes);
  bases_[kScalars] = numbers_->data() + scalars_begin_;
}

void StreamExecutor::build_memory(int arenas) {
  size_t workspace = 0;
  for_each_step([&](const ReadyStep& ready) {
    workspace = std::max(workspace, ready.kernel->workspace_bytes());
  });
  workspace_ = device::Memory(device_, workspace);
  for (int a = 0; a < arenas; ++a) arenas_.emplace_back(device_, plan_.arena_bytes);
  use_arena(0);
  packed_ = device::Memory(device_, plan_.packed_bytes);
  bases_[kPacked] = packed_.data();
  tile_ = device::Memory(device_, plan_.tile_scratch_bytes);
  build_numbers();

  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    Input& input = inputs_.emplace_back();
    const auto base = static_cast<size_t>(plan_.base_of_input(i));
    input.in_pass = pass_.used[base];
    if (!input.in_pass && !update_.used[base]) continue;
    const size_t bytes = plan_.desc(plan_.inputs[i]).bytes();
    input.pinned = device::Memory(device_, bytes, device::MemoryKind::pinned);
    input.memory = device::Memory(device_, bytes);
    bases_[base] = input.memory.data();
  }

  if (pass_.used[kGradients] || !plan_.buckets.empty()) {
    gradients_ = device::Memory(device_, plan_.variables.trained_bytes);
    // Between parameters lie bytes that no kernel writes, and buckets are sent whole.
    stream_->fill(gradients_.data(), std::byte{0}, gradients_.bytes());
  }
  bases_[kGradients] = gradients_.data();
  for (size_t b = 0; b < plan_.buckets.size(); ++b) {
    bases_[static_cast<size_t>(plan_.base_of_sum(b))] = gradients_.data() + plan_.buckets[b].offset;
    outgoing_.push_back({device_.make_event(), fmt::format("gradients of bucket {}", b)});
  }
}

void StreamExecutor::bind(const ReplicaState& replica) {
  const auto bind_base = [&](Base base, void* host) {
    const auto b = static_cast<size_t>(base);
    // An evaluation is given all that training keeps, and uses a part of it.
    if (host && (pass_.used[b] || update_.used[b])) bases_[b] = mirrors_.bind(base, host);
  };
  bind_base(kParameters, replica.parameters);
  bind_base(kTables, replica.tables);
  bind_base(kStatistics, replica.statistics);
  bind_base(kState, replica.state);
  if (replica.gradients) host_gradients_ = static_cast<std::byte*>(replica.gradients);
}

void StreamExecutor::use_arena(int arena) {
  CHECK(arena >= 0 && arena < arenas(), "arena {} of {}", arena, arenas());
  arena_in_use_ = arena;
  bases_[kArena] = arenas_[static_cast<size_t>(arena)].data();
}

void StreamExecutor::bind_input(graph::Value input, const void* data) {
  inputs_[index_of_input(plan_, input)].host = data;
}

void StreamExecutor::set_scalar(graph::Value scalar, float value) {
  CHECK(!pending_.any(), "'{}' is set before the update that reads it is over",
        plan_.graph[scalar].name);
  std::memcpy(scalars_.data() + plan_.place(scalar).offset, &value, sizeof value);
}

void StreamExecutor::set_exchanges(Exchanges& exchanges) {
  exchanges_ = &exchanges;
  if (staged_.bytes() == 0)
    staged_ = device::Memory(device_, gradients_.bytes(), device::MemoryKind::pinned);
}

void StreamExecutor::wait_for_all(std::string_view what) {
  stream_->record(*reached_);
  device_.wait(*reached_, what);
}

void StreamExecutor::settle(Kept what) {
  finish_update();
  wait_for_all("the update");
  mirrors_.download(*stream_, what);
}

const void* StreamExecutor::result(graph::Value v) {
  const Place place = plan_.place(v);
  CHECK(is_stored(plan_, place), "'{}' is not stored", plan_.graph[v].name);
  if (place.base != kArena) return inputs_[static_cast<size_t>(place.base - kFirstInput)].host;
  const auto [at, added] = results_.try_emplace(v.id);
  Result& result = at->second;
  if (added) {
    result.pinned = device::Memory(device_, plan_.desc(v).bytes(), device::MemoryKind::pinned);
    result.what = fmt::format("the result '{}'", plan_.graph[v].name);
  }
  stream_->copy(result.pinned.data(), bases_[kArena] + place.offset, result.pinned.bytes());
  wait_for_all(result.what);
  return result.pinned.data();
}

std::byte* StreamExecutor::address(const Place& place) const { return address(place, 0); }

std::byte* StreamExecutor::address(const Place&, int) const {
  CHECK(false, "messages of ranks cannot reach memory of a device");
}

size_t StreamExecutor::memory_bytes() const {
  size_t bytes =
      packed_.bytes() + tile_.bytes() + workspace_.bytes() + gradients_.bytes() + numbers_->bytes();
  for (const device::Memory& arena : arenas_) bytes += arena.bytes();
  for (const Input& input : inputs_) bytes += input.memory.bytes();
  return bytes;
}

void StreamExecutor::set_profiling(bool on) {
  profiling_ = on;
  take_timings();
}

void StreamExecutor::set_spans(trace::Spans* spans) {
  spans_ = spans;
  if (!spans) return;
  lane_ = spans->lane(fmt::format("stream {}", stream_->name()));
  for_each_step([&](ReadyStep& ready) {
    ready.span = spans->name(ready.step->name + " by " + ready.step->kernel);
  });
}

std::vector<Executor::Timing> StreamExecutor::take_timings() {
  std::vector<Timing> timings;
  for_each_step([&](ReadyStep& ready) {
    timings.push_back({ready.step->name, ready.step->kernel, std::exchange(ready.seconds, 0)});
  });
  return timings;
}

}  // namespace tutti::plan
