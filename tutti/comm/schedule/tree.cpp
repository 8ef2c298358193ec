#include "tutti/comm/schedule/tree.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/numeric/tree_sum.h"

namespace tutti::comm {
namespace {

void collect_maximal(Range node, Range owned, std::vector<Range>& parts) {
  if (node.hi <= owned.lo || node.lo >= owned.hi) return;
  if (node.lo >= owned.lo && node.hi <= owned.hi) {
    parts.push_back(node);
    return;
  }
  const int mid = split_point(node);
  collect_maximal({node.lo, mid}, owned, parts);
  collect_maximal({mid, node.hi}, owned, parts);
}

}  // namespace

int split_point(Range node) {
  CHECK(node.size() >= 2, "a leaf has no split");
  return static_cast<int>(tree_split(node.lo, node.hi));
}

bool is_node(int replicas, Range range) {
  Range node{0, replicas};
  while (node != range) {
    if (node.size() < 2 || range.lo < node.lo || range.hi > node.hi || range.size() < 1)
      return false;
    const int mid = split_point(node);
    if (range.hi <= mid)
      node.hi = mid;
    else
      node.lo = mid;
  }
  return true;
}

std::vector<Range> maximal_subtrees(int replicas, Range owned) {
  CHECK(0 <= owned.lo && owned.lo < owned.hi && owned.hi <= replicas, "replicas {}..{} of {}",
        owned.lo, owned.hi, replicas);
  std::vector<Range> parts;
  collect_maximal({0, replicas}, owned, parts);
  return parts;
}

std::vector<int> first_replicas(int replicas, int ranks) {
  CHECK(1 <= ranks && ranks <= replicas, "{} replicas on {} ranks", replicas, ranks);
  std::vector<int> first{0};
  for (int p = 0; p < ranks; ++p)
    first.push_back(first.back() + replicas / ranks + (p < replicas % ranks ? 1 : 0));
  return first;
}

std::vector<Range> all_parts(int replicas, std::span<const int> first) {
  std::vector<Range> all;
  for (size_t p = 0; p + 1 < first.size(); ++p)
    for (const Range& part : maximal_subtrees(replicas, {first[p], first[p + 1]}))
      all.push_back(part);
  return all;
}

SlotPlan plan_slots(int replicas, Range owned) {
  CHECK(0 <= owned.lo && owned.lo < owned.hi && owned.hi <= replicas, "replicas {}..{} of {}",
        owned.lo, owned.hi, replicas);
  SlotPlan plan;
  for (int r = owned.lo; r < owned.hi; ++r) {
    SlotPlan::Replica step{.slot = static_cast<int>(plan.parts.size()), .adds = {}};
    plan.parts.push_back({r, r + 1});
    plan.slots = std::max(plan.slots, static_cast<int>(plan.parts.size()));
    // Two nodes that tile a third are its children: add them as soon as both are there.
    while (plan.parts.size() >= 2 &&
           is_node(replicas, {plan.parts[plan.parts.size() - 2].lo, r + 1})) {
      const int from = static_cast<int>(plan.parts.size()) - 1;
      step.adds.push_back({.into = from - 1, .from = from});
      plan.parts.pop_back();
      plan.parts.back().hi = r + 1;
    }
    plan.replicas.push_back(std::move(step));
  }
  return plan;
}

}  // namespace tutti::comm
