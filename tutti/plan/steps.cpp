#include "tutti/plan/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "tutti/ops/reorder.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/plan_exchanges.h"
#include "tutti/plan/step_problem.h"

namespace tutti::plan {
namespace {

/// Knows the memory that kernels need besides their operands; equal problems are asked once.
class KernelMemory {
 public:
  void note(Step& step, const backend::KernelCandidate& chosen) {
    const auto [at, added] = bytes_.try_emplace(problem_text(step.request) + " by " + step.kernel);
    if (added) {
      const std::unique_ptr<backend::Kernel> kernel = chosen.make();
      at->second = {kernel->workspace_bytes(), kernel->state_bytes(), kernel->state_output() < 0,
                    kernel->number_bytes()};
    }
    std::tie(step.workspace_bytes, step.state_bytes, step.first_has_state, step.number_bytes) =
        at->second;
  }

 private:
  // Workspace, state, whether the first thread has one, numbers.
  std::map<std::string, std::tuple<size_t, size_t, bool, size_t>> bytes_;
};

class StepMaker {
 public:
  StepMaker(const Plan& plan, KernelChooser& chooser) : plan_(plan), chooser_(chooser) {}

  Step make(int n, const PlanBand* band) {
    const graph::Node& node = plan_.graph.nodes()[static_cast<size_t>(n)];
    Step step = step_of(plan_.graph, plan_.descs, n, band);
    const backend::KernelCandidate chosen = chooser_.pick(step);
    for (size_t i = 0; i < chosen.in.size(); ++i) {
      const graph::Value v = node.in[i];
      const bool as_it_lies = !step.request.in_free[i] || chosen.in[i] == plan_.desc(v);
      step.in.push_back(as_it_lies ? place_of(v, step.in_batched[i], node)
                                   : packed(v, chosen.in[i]));
    }
    for (size_t i = 0; i < node.out.size(); ++i)
      step.out.push_back(place_of(node.out[i], step.out_batched[i], node));
    step.request.in = chosen.in;
    step.request.out = chosen.out;
    step.request.in_free.assign(chosen.in.size(), false);
    step.request.out_free.assign(chosen.out.size(), false);
    memory_.note(step, chosen);
    return step;
  }

  /// Moves the packing steps out of this object.
  void take_packs(StepList& list) {
    list.packs = std::move(packs_);
    list.pack_ops = std::move(pack_ops_);
    list.packed_bytes = packed_bytes_;
  }

 private:
  Place place_of(graph::Value v, bool in_tiles, const graph::Node& reader) const {
    Place place = plan_.place(v);
    if (!in_tiles) place.stride = 0;
    if (!reader.op->in_update() || plan_.graph[v].role != graph::Role::gradient) return place;
    const int bucket = bucket_at(plan_.buckets, place.offset);
    if (bucket < 0) return place;
    const auto b = static_cast<size_t>(bucket);
    return {plan_.base_of_sum(b), place.offset - plan_.buckets[b].offset, 0};
  }

  /// Returns the place of `parameter` packed as `wanted`; adds the packing step the first time.
  Place packed(graph::Value parameter, const TensorDesc& wanted) {
    const std::string key = fmt::format("{} {}", parameter.id, wanted.to_string());
    const auto [at, added] = packed_.try_emplace(key, Place{kPacked, packed_bytes_, 0});
    if (!added) return at->second;
    packed_bytes_ += aligned(wanted.bytes());
    pack_ops_.push_back(std::make_shared<ops::Reorder>(wanted.dtype));
    Step step;
    step.name = plan_.graph[parameter].name + " as " + wanted.to_string();
    step.walk = graph::Walk::whole;
    step.request = {pack_ops_.back().get(), {plan_.desc(parameter)}, {wanted}, {false}, {false}};
    step.in_batched = step.out_batched = {false};
    memory_.note(step, chooser_.pick(step));
    step.in = {plan_.place(parameter)};
    step.out = {at->second};
    packs_.push_back(std::move(step));
    return at->second;
  }

  const Plan& plan_;
  KernelChooser& chooser_;
  KernelMemory memory_;
  std::map<std::string, Place> packed_;  // parameter and desc
  std::vector<Step> packs_;
  std::vector<graph::OpPtr> pack_ops_;
  size_t packed_bytes_ = 0;
};

/// Sums up the memory that a thread needs besides operands.
void sum_memory(StepList& list) {
  const auto add_workspace = [&](const Step& step) {
    list.workspace_bytes = std::max(list.workspace_bytes, step.workspace_bytes);
  };
  for (const std::vector<Step>& band : list.bands) {
    size_t states = 0, first = 0;
    for (const Step& step : band) {
      states += aligned(step.state_bytes);
      if (step.first_has_state) first += aligned(step.state_bytes);
    }
    list.state_bytes = std::max(list.state_bytes, states);
    list.first_state_bytes = std::max(list.first_state_bytes, first);
    std::ranges::for_each(band, add_workspace);
  }
  std::ranges::for_each(list.packs, add_workspace);
  std::ranges::for_each(list.updates, add_workspace);
}

}  // namespace

StepList make_steps(const Plan& plan, const Schedule& schedule, KernelChooser& chooser) {
  StepMaker maker(plan, chooser);
  StepList list;
  for (size_t b = 0; b < schedule.bands.size(); ++b) {
    std::vector<Step>& band = list.bands.emplace_back();
    for (const int n : schedule.bands[b].nodes) {
      band.push_back(maker.make(n, &plan.bands[b]));
      if (plan.bands[b].repeats >= 0) band.back().name += " again";
    }
  }
  for (const int n : schedule.updates)
    if (plan.graph.walk(plan.graph.nodes()[static_cast<size_t>(n)]) != graph::Walk::exchange)
      list.updates.push_back(maker.make(n, nullptr));
  maker.take_packs(list);
  sum_memory(list);
  return list;
}

}  // namespace tutti::plan
