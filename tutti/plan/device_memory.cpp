#include "tutti/plan/device_memory.h"

#include <cstdint>
#include <utility>

#include "tutti/plan/memory.h"

namespace tutti::plan {
namespace {

/// By Base, whether one of these places is there.
class UsedBases {
 public:
  explicit UsedBases(const Plan& plan)
      : used_(static_cast<size_t>(plan.base_of_sum(plan.buckets.size()))) {}
  void add(const std::vector<Place>& places) {
    for (const Place& place : places) used_[static_cast<size_t>(place.base)] = true;
  }
  bool operator[](int base) const { return used_[static_cast<size_t>(base)]; }

 private:
  std::vector<bool> used_;
};

}  // namespace

DeviceInputs device_inputs(const Plan& plan) {
  UsedBases pass(plan), update(plan);
  for (const PlanBand& band : plan.bands)
    for (const Step& step : band.steps) pass.add(step.in);
  for (const PlanExchange& exchange : plan.exchanges)
    if (exchange.kind == ExchangeKind::parts) pass.add(exchange.in);
  for (const Step& step : plan.updates) update.add(step.in);
  DeviceInputs made;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    DeviceInput& input = made.inputs.emplace_back();
    const int base = plan.base_of_input(i);
    input.in_pass = pass[base];
    input.used = input.in_pass || update[base];
    if (!input.used) continue;
    size_t& end = input.in_pass ? made.pass_bytes : made.update_bytes;
    input.bytes = plan.desc(plan.inputs[i]).bytes();
    input.offset = std::exchange(end, end + aligned(input.bytes));
  }
  return made;
}

size_t device_number_bytes(const Plan& plan) {
  size_t bytes = kAlignment * (plan.graph.with_role(graph::Role::scalar).size() + 1);
  const auto add = [&](const std::vector<Step>& steps) {
    for (const Step& step : steps) bytes += aligned(step.number_bytes);
  };
  add(plan.packs);
  for (const PlanBand& band : plan.bands) add(band.steps);
  add(plan.updates);
  return bytes;
}

size_t device_finding_bytes(size_t bytes) {
  const size_t floats = bytes / sizeof(float);
  return kFindingsBytes + sizeof(int64_t) * ((floats + kFindingsRun - 1) / kFindingsRun);
}

}  // namespace tutti::plan
