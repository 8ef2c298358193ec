#pragma once
// Plan: owns a tutti_comm_plan.

#include <tutti_comm.h>

#include <memory>

namespace tutti_torch {

struct DestroyPlan {
  void operator()(tutti_comm_plan* plan) const { tutti_comm_plan_destroy(plan); }
};
/// A plan is not in flight when it is destroyed, unless the group has failed.
using Plan = std::unique_ptr<tutti_comm_plan, DestroyPlan>;

}  // namespace tutti_torch
