#include <algorithm>
#include <set>
#include <tuple>

#include "tutti/plan/compiler.h"

namespace tutti {

KernelRequest with_samples(const Step& step, int64_t samples) {
  KernelRequest request = step.request;
  for (size_t i = 0; i < request.in.size(); ++i)
    if (step.in_batched[i]) request.in[i].shape[0] = samples;
  for (size_t i = 0; i < request.out.size(); ++i)
    if (step.out_batched[i]) request.out[i].shape[0] = samples;
  return request;
}

namespace {

/// Samples of the step's tile; 0: it has none.
int64_t tile_of(const Step& step) {
  for (size_t i = 0; i < step.in_batched.size(); ++i)
    if (step.in_batched[i]) return step.request.in[i].shape[0];
  for (size_t i = 0; i < step.out_batched.size(); ++i)
    if (step.out_batched[i]) return step.request.out[i].shape[0];
  return 0;
}

}  // namespace

Step Compiler::describe(int n, const PlanBand* band) {
  Step step;
  step.samples = band ? band->samples : 0;
  step.node = n;
  step.name = node(n).name;
  std::vector<ValueType> types;
  for (const Value v : node(n).in) types.push_back(graph_.type(v));
  step.walk = node(n).op->walk(types);
  step.request.op = node(n).op.get();
  const auto add = [&](Value v, bool whole, std::vector<TensorDesc>& descs,
                       std::vector<bool>& batched) {
    TensorDesc desc = plan_.descs[index_of(v)];
    const bool in_tiles = graph_.type(v).batched && !whole;
    if (in_tiles) desc.shape[0] = band ? band->tile : 0;
    descs.push_back(desc);
    batched.push_back(in_tiles);
  };
  for (size_t i = 0; i < node(n).in.size(); ++i) {
    const Value v = node(n).in[i];
    add(v, step.walk == Walk::across, step.request.in, step.in_batched);
    step.request.in_free.push_back(graph_[v].role == Role::parameter && !node(n).op->in_update());
  }
  for (const Value v : node(n).out) {
    add(v, false, step.request.out, step.out_batched);
    step.request.out_free.push_back(false);
  }
  return step;
}

KernelCandidate Compiler::pick(Step& step) {
  std::vector<KernelCandidate> candidates = backend_.candidates(step.request);
  const auto choice = [&]() -> KernelCandidate& {
    const KernelCandidate& taken =
        choose(step.request, candidates, plan_.options.measure, plan_.options.choices,
               [&](const KernelCandidate& c) { return packing_seconds(step, c); });
    return candidates[static_cast<size_t>(&taken - candidates.data())];
  };
  try {
    KernelCandidate* taken = &choice();
    for (int64_t n = size_refused(step, *taken); n > 0; n = size_refused(step, *taken)) {
      taken->refusal = fmt::format("refuses a tile of {} samples in the layouts it asks for", n);
      plan_.options.choices.forget(problem_text(step.request));
      taken = &choice();
    }
    const KernelCandidate& chosen = *taken;
    step.kernel = chosen.name;
    step.speed = chosen.speed;
    for (const KernelCandidate& c : candidates)
      if (&c != &chosen)
        step.refused.push_back(c.name + ": " +
                               (c.refusal.empty() ? "slower, or not first" : c.refusal));
    return chosen;
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("layer '{}': {}", step.name, error.what()));
  }
}

int64_t Compiler::size_refused(const Step& step, const KernelCandidate& candidate) const {
  Step sized = step;
  sized.request.in = candidate.in;
  sized.request.out = candidate.out;
  sized.request.in_free.assign(candidate.in.size(), false);
  sized.request.out_free.assign(candidate.out.size(), false);
  const int64_t tile = tile_of(step);
  if (tile == 0) return 0;
  std::set<int64_t> sizes;
  for (int t = 0; t < plan_.options.threads; ++t) {
    const int64_t share = share_of(step.samples, t, plan_.options.threads).size();
    const int tiles = tiles_of(share, tile);
    if (tiles == 0) sizes.insert(1);  // it still shares in the finish
    for (int i = 0; i < tiles; ++i) sizes.insert(share_of(share, i, tiles).size());
  }
  for (const int64_t n : sizes)
    if (std::ranges::none_of(backend_.candidates(with_samples(sized, n)), [&](const auto& c) {
          return c.refusal.empty() && c.name == candidate.name;
        }))
      return n;
  return 0;
}

double Compiler::packing_seconds(const Step& step, const KernelCandidate& candidate) const {
  constexpr double kBytesASecond = 16e9;  // read and written, by one core
  size_t bytes = 0;
  for (size_t i = 0; i < candidate.in.size(); ++i) {
    const TensorDesc& parameter = step.request.in[i];
    if (step.request.in_free[i] && !(candidate.in[i] == parameter))
      bytes += parameter.bytes() + candidate.in[i].bytes();
  }
  const int64_t tile = tile_of(step);
  const double runs = tile > 0 ? static_cast<double>(step.samples) / static_cast<double>(tile) : 1;
  return static_cast<double>(bytes) / kBytesASecond / runs;
}

void Compiler::lay_out_variables() {
  if (plan_.options.variables) {
    for (const Value p : graph_.with_role(Role::parameter)) {
      const Variable* variable = plan_.options.variables->find_parameter(graph_[p].name);
      CHECK(variable, "parameter '{}' is not among the variables of the training plan",
            graph_[p].name);
      plan_.descs[index_of(p)] = variable->desc;
    }
    for (const Role role : {Role::gradient, Role::state})
      for (const Value v : graph_.with_role(role))
        plan_.descs[index_of(v)].layout = plan_.descs[index_of(graph_[v].of)].layout;
    lay_out_update_results();
    return;
  }
  for (size_t b = 0; b < schedule_.bands.size(); ++b)
    for (const int n : schedule_.bands[b].nodes)
      for (size_t o = 0; o < node(n).out.size(); ++o) {
        const Value g = node(n).out[o];
        if (graph_[g].role != Role::gradient || graph_[g].producer != n) continue;
        Step step = describe(n, &plan_.bands[b]);
        step.request.out_free[o] = true;
        const KernelCandidate& chosen = pick(step);
        plan_.descs[index_of(g)].layout = chosen.out[o].layout;
        plan_.descs[index_of(graph_[g].of)].layout = chosen.out[o].layout;
      }
  for (const Value s : graph_.with_role(Role::state))
    plan_.descs[index_of(s)].layout = plan_.descs[index_of(graph_[s].of)].layout;
  lay_out_update_results();
}

void Compiler::lay_out_update_results() {
  for (const int n : schedule_.updates) {
    std::vector<ValueType> types;
    for (const Value v : node(n).in)
      types.push_back({plan_.descs[index_of(v)], graph_.type(v).batched});
    const std::vector<ValueType> results = node(n).op->infer(types);
    for (size_t o = 0; o < results.size(); ++o)
      plan_.descs[index_of(node(n).out[o])] = results[o].desc;
  }
}

void Compiler::choose_kernels() {
  for (size_t b = 0; b < schedule_.bands.size(); ++b) {
    PlanBand& band = plan_.bands[b];
    for (const int n : schedule_.bands[b].nodes) band.steps.push_back(choose_kernel(n, &band));
    for (const Step& step : band.steps) band.reduces |= step.walk == Walk::reduce;
  }
  for (const int n : schedule_.updates)
    if (describe(n, nullptr).walk != Walk::exchange)
      plan_.updates.push_back(choose_kernel(n, nullptr));
  sum_memory();
}

Step Compiler::choose_kernel(int n, const PlanBand* band) {
  Step step = describe(n, band);
  const KernelCandidate chosen = pick(step);
  for (size_t i = 0; i < chosen.in.size(); ++i) {
    Place place{.base = -1,
                .offset = index_of(node(n).in[i]),
                .stride = 0};  // resolved when everything has a place
    if (step.request.in_free[i] && !(chosen.in[i] == plan_.descs[index_of(node(n).in[i])]))
      place = {.base = kPacked, .offset = packed(node(n).in[i], chosen.in[i]), .stride = 0};
    step.in.push_back(place);
  }
  for (const Value v : node(n).out)
    step.out.push_back({.base = -1, .offset = index_of(v), .stride = 0});
  step.request.in = chosen.in;
  step.request.out = chosen.out;
  step.request.in_free.assign(chosen.in.size(), false);
  step.request.out_free.assign(chosen.out.size(), false);
  note_memory(step, chosen);
  return step;
}

void Compiler::note_memory(Step& step, const KernelCandidate& chosen) {
  const auto [at, added] =
      memory_of_kernel_.try_emplace(problem_text(step.request) + " by " + step.kernel);
  if (added) {
    const std::unique_ptr<Kernel> kernel = chosen.make();
    at->second = {kernel->workspace_bytes(), kernel->state_bytes()};
  }
  std::tie(step.workspace_bytes, step.state_bytes) = at->second;
}

void Compiler::sum_memory() {
  const auto add_workspace = [&](const Step& step) {
    plan_.workspace_bytes = std::max(plan_.workspace_bytes, step.workspace_bytes);
  };
  for (const PlanBand& band : plan_.bands) {
    size_t states = 0;
    for (const Step& step : band.steps) states += aligned(step.state_bytes);
    plan_.state_bytes = std::max(plan_.state_bytes, states);
    std::ranges::for_each(band.steps, add_workspace);
  }
  std::ranges::for_each(plan_.packs, add_workspace);
  std::ranges::for_each(plan_.updates, add_workspace);
}

size_t Compiler::packed(Value parameter, const TensorDesc& wanted) {
  const std::string key = fmt::format("{} {}", parameter.id, wanted.to_string());
  if (const auto at = packed_.find(key); at != packed_.end()) return at->second;
  const size_t offset = packed_[key] = plan_.packed_bytes;
  plan_.packed_bytes += aligned(wanted.bytes());
  Step step;
  step.name = graph_[parameter].name + " as " + wanted.to_string();
  step.walk = Walk::whole;
  reorders_.push_back(std::make_shared<Reorder>(wanted.dtype));
  plan_.pack_ops.push_back(reorders_.back());
  step.request = {
      reorders_.back().get(), {plan_.descs[index_of(parameter)]}, {wanted}, {false}, {false}};
  step.in_batched = step.out_batched = {false};
  note_memory(step, pick(step));
  step.in = {{.base = -1, .offset = index_of(parameter), .stride = 0}};
  step.out = {{.base = kPacked, .offset = offset, .stride = 0}};
  plan_.packs.push_back(std::move(step));
  return offset;
}

}  // namespace tutti
