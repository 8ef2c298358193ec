#include "tutti/plan/run/stream_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/run/chosen_kernel.h"
#include "tutti/plan/run/places.h"

namespace tutti::plan {

StreamExecutor::StreamExecutor(const Plan& plan, const backend::Backend& backend, int arenas)
    : Executor(plan), device_(*backend.device()), stream_(device_.make_stream("compute")),
      reached_(device_.make_event()), mirrors_(*backend.mirrors(), plan.variables),
      bases_(static_cast<size_t>(plan.base_of_sum(plan.buckets.size()))),
      scalars_(kAlignment * (plan.graph.with_role(graph::Role::scalar).size() + 1)),
      pending_(plan) {
  require_whole_batch();
  touch_bases();
  build_steps(backend);
  build_memory(arenas);
  find_left_to_updates();
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
    if (exchange.kind != ExchangeKind::gradients && exchange.kind != ExchangeKind::parts)
      refuse(exchange);
  }
}

void StreamExecutor::refuse(const PlanExchange& exchange) const {
  const graph::Node& node = plan_.graph.nodes()[static_cast<size_t>(exchange.node)];
  throw ConfigError(
      fmt::format("'{}': ranks with devices exchange gradients alone, and not '{}': let each "
                  "rank have whole samples, all layers and whole updates, or set run.device = "
                  "\"cpu\"",
                  node.name, node.op->name()));
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
  CHECK(!pass_.used[kScalars], "a pass reads scalars, which are copied for updates");
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
  bytes += scalars_.size();
  std::ranges::for_each(updates_, add);
  updates_end_ = bytes;
  std::ranges::for_each(packs_, add);
  numbers_ = device::Memory(device_, bytes);
  bases_[kScalars] = numbers_.data() + scalars_begin_;
  pack_numbers_ = device::Memory(device_, bytes - updates_end_, device::MemoryKind::pinned);
  for (const ReadyStep& ready : packs_)  // no step changes them
    ready.kernel->write_numbers({}, pack_numbers_.data() + (ready.numbers - updates_end_));
}

void StreamExecutor::build_inputs() {
  const DeviceInputs places = device_inputs(plan_);
  for (const DeviceInput& input : places.inputs) inputs_.push_back({input});
  slots_ = std::make_unique<PassSlots>(device_, SlotBytes{.pass_inputs = places.pass_bytes,
                                                          .update_inputs = places.update_bytes,
                                                          .numbers = updates_end_,
                                                          .results = kResultBytes});
  update_inputs_ = device::Memory(device_, places.update_bytes);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].used && !inputs_[i].in_pass)
      bases_[static_cast<size_t>(plan_.base_of_input(i))] =
          update_inputs_.data() + inputs_[i].offset;
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
  build_inputs();
  for (size_t b = 0; b < plan_.buckets.size(); ++b)
    outgoing_.push_back({device_.make_event(), fmt::format("gradients of bucket {}", b)});
  build_gradients();
}

/// Makes the arena of gradients that do not stay: nobody exchanges them, or somebody does in
/// memory of the host.
void StreamExecutor::build_gradients() {
  if (gradients_.bytes() == 0 && (pass_.used[kGradients] || !plan_.buckets.empty())) {
    gradients_ = device::Memory(device_, plan_.variables.trained_bytes);
    // Between parameters lie bytes that no kernel writes, and buckets are sent whole.
    stream_->fill(gradients_.data(), std::byte{0}, gradients_.bytes());
  }
  bases_[kGradients] = gradients_.data();
  bind_sums(gradients_.data());
}

void StreamExecutor::bind_sums(std::byte* arena) {
  for (size_t b = 0; b < plan_.buckets.size(); ++b)
    bases_[static_cast<size_t>(plan_.base_of_sum(b))] = arena + plan_.buckets[b].offset;
}

void StreamExecutor::find_left_to_updates() {
  std::vector<graph::Value> made;
  const auto node_of = [this](const Step& step) -> const graph::Node& {
    return plan_.graph.nodes()[static_cast<size_t>(step.node)];
  };
  for (const Step& step : plan_.updates)
    std::ranges::copy(node_of(step).out, std::back_inserter(made));
  for (const Step& step : plan_.updates)
    for (const graph::Value v : node_of(step).in) {
      const bool floats = plan_.desc(v).dtype != DType::i32;
      if (floats && is_stored(plan_, plan_.place(v)) && std::ranges::find(made, v) == made.end())
        left_to_updates_.push_back(v);
    }
}

void StreamExecutor::bind(const ReplicaState& replica) {
  put_deferred();
  const auto bind_base = [&](Base base, void* host) {
    const auto b = static_cast<size_t>(base);
    // An evaluation is given all that training keeps, and uses a part of it.
    if (host && (pass_.used[b] || update_.used[b])) bases_[b] = mirrors_.bind(base, host);
  };
  bind_base(kParameters, replica.parameters);
  bind_base(kTables, replica.tables);
  bind_base(kStatistics, replica.statistics);
  bind_base(kState, replica.state);
  if (!replica.gradients) return;
  host_gradients_ = static_cast<std::byte*>(replica.gradients);
  if (here_) bases_[kGradients] = here_->arena(host_gradients_, *stream_);
}

void StreamExecutor::use_arena(int arena) {
  CHECK(arena >= 0 && arena < arenas(), "arena {} of {}", arena, arenas());
  put_deferred();
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
  put_deferred();
  wait_for_all("work without these exchanges");
  recordings_.clear();
  exchanges_ = &exchanges;
  own_copies_.assign(plan_.exchanges.size(), {});
  for (size_t e = 0; e < plan_.exchanges.size(); ++e) {
    if (plan_.exchanges[e].kind != ExchangeKind::parts) continue;
    std::optional<std::vector<OwnCopy>> copies = exchanges.own_copies(static_cast<int>(e));
    if (!copies) refuse(plan_.exchanges[e]);
    own_copies_[e] = std::move(*copies);
  }
  here_.reset();
  if (!plan_.buckets.empty() && exchanges.gradients_stay() && DeviceGradients::possible(device_)) {
    gradients_ = {};
    here_.emplace(device_, plan_.variables.trained_bytes, *stream_);
    return;
  }
  build_gradients();
  if (staged_.bytes() == 0)
    staged_ = device::Memory(device_, gradients_.bytes(), device::MemoryKind::pinned);
}

void StreamExecutor::wait_for_all(std::string_view what) {
  stream_->record(*reached_);
  device_.wait(*reached_, what);
}

void StreamExecutor::settle(Kept what) {
  put_deferred();
  finish_update();
  wait_for_all("the update");
  mirrors_.download(*stream_, what);
}

const void* StreamExecutor::result(graph::Value v) {
  const Place place = plan_.place(v);
  CHECK(is_stored(plan_, place), "'{}' is not stored", plan_.graph[v].name);
  if (place.base != kArena) return inputs_[static_cast<size_t>(place.base - kFirstInput)].host;
  put_deferred();
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

void StreamExecutor::watch(std::vector<graph::Value> of_pass, std::vector<graph::Value> of_update) {
  for (const auto* const list : {&of_pass, &of_update}) {
    CHECK(list->size() <= kMostWatched, "{} results are watched", list->size());
    for (const graph::Value v : *list)
      CHECK(plan_.place(v).base == kArena && plan_.desc(v).bytes() == sizeof(float),
            "'{}' is no number in the arena", plan_.graph[v].name);
  }
  put_deferred();
  wait_for_all("work whose results are not watched");
  recordings_.clear();
  watched_in_pass_ = std::move(of_pass);
  watched_in_update_ = std::move(of_update);
  watches_ = true;
}

std::optional<Readings> StreamExecutor::next_readings(Until until) {
  if (until == Until::all) put_deferred();
  if (unread_.empty()) return {};
  const Unread one = unread_.front();
  if (deferred_ && one.slot == slots_->current()) return {};
  if (!slots_->done(one.slot)) {
    if (until == Until::over || (until == Until::room && one.slot != slots_->next())) return {};
    slots_->wait(one.slot, until == Until::room ? "the pass before the last one" : "losses");
  }
  unread_.pop_front();
  const std::byte* const results = slots_->results_of(one.slot);
  Readings readings{.of_update = one.of_update};
  const auto numbers_at = [&](size_t offset, size_t count) {
    return std::span(reinterpret_cast<const float*>(results + offset), count);
  };
  if (one.of_update) {
    readings.numbers = numbers_at(kUpdateResults, watched_in_update_.size());
    return readings;
  }
  readings.numbers = numbers_at(kPassResults, watched_in_pass_.size());
  if (here_) std::memcpy(&readings.bad_gradient, results, sizeof readings.bad_gradient);
  for (const Input& input : inputs_)
    readings.inputs.push_back(input.in_pass ? slots_->pass_inputs_of(one.slot) + input.offset
                                            : nullptr);
  return readings;
}

std::byte* StreamExecutor::address(const Place& place) const { return address(place, 0); }

std::byte* StreamExecutor::address(const Place&, int) const {
  throw ConfigError(
      "messages of ranks cannot reach memory of a device: let each rank have whole samples, all "
      "layers and whole updates, or set run.device = \"cpu\"");
}

size_t StreamExecutor::memory_bytes() const {
  size_t bytes = packed_.bytes() + tile_.bytes() + workspace_.bytes() + gradients_.bytes() +
                 numbers_.bytes() + update_inputs_.bytes() + slots_->device_bytes();
  if (here_) bytes += here_->memory_bytes();
  for (const device::Memory& arena : arenas_) bytes += arena.bytes();
  return bytes;
}

void StreamExecutor::set_profiling(bool on) {
  put_deferred();
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
