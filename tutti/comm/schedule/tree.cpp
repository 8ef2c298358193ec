#include "tutti/comm/schedule/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr size_t kTreeBlock = 1024;  // floats: five 4 KiB streams stay inside a 32 KiB L1
constexpr int kMaxScratch = 48;      // up to three held per two levels, 31 levels

// The result may be one of the operands at the same index, never at another one: no dependency
// between iterations.
void add2(const float* a, const float* b, float* out, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}
void add3(const float* a, const float* b, const float* c, float* out, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) out[i] = (a[i] + b[i]) + c[i];
}
void add4(const float* a, const float* b, const float* c, const float* d, float* out, size_t n) {
#pragma GCC ivdep
  for (size_t i = 0; i < n; ++i) out[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

// The number of the leaf that is `node`, or -1. The leaves are in order.
int leaf_number(std::span<const Range> leaves, Range node) {
  const auto at = std::lower_bound(leaves.begin(), leaves.end(), node.lo,
                                   [](Range leaf, int lo) { return leaf.lo < lo; });
  return at != leaves.end() && *at == node ? static_cast<int>(at - leaves.begin()) : -1;
}

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
  return node.lo + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.size() - 1)));
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

TreeSum::TreeSum(int replicas, std::span<const Range> leaves) : leaves_(leaves.size()) {
  const int root = build(replicas, {0, replicas}, leaves);
  if (root >= 0) steps_.push_back({{root, -1, -1, -1}, 1, 0});  // a single leaf: a copy
  CHECK(scratch_blocks_ <= kMaxScratch);
  free_scratch_.clear();
}

int TreeSum::take_scratch() {
  if (free_scratch_.empty()) return scratch_blocks_++;
  const int block = free_scratch_.back();
  free_scratch_.pop_back();
  return block;
}

void TreeSum::give_back(int operand) {
  if (operand < 0) free_scratch_.push_back(~operand);
}

// Returns the operand that holds the node's sum.
int TreeSum::build(int replicas, Range node, std::span<const Range> leaves) {
  if (const int leaf = leaf_number(leaves, node); leaf >= 0) return leaf;
  CHECK(node.size() >= 2, "the leaves do not tile the {} replicas with nodes of the tree",
        replicas);
  const int mid = split_point(node);
  const Range left{node.lo, mid};
  const Range right{mid, node.hi};

  // A pair below on the left (and on the right) is taken into this step: one pass over memory
  // instead of two or three.
  Step step{{-1, -1, -1, -1}, 0, 0};
  const auto append = [&](Range child, bool may_open) {
    if (may_open && leaf_number(leaves, child) < 0) {
      const int inner = split_point(child);
      step.operands[step.count++] = build(replicas, {child.lo, inner}, leaves);
      step.operands[step.count++] = build(replicas, {inner, child.hi}, leaves);
    } else {
      step.operands[step.count++] = build(replicas, child, leaves);
    }
  };
  append(left, true);
  append(right, step.count == 2);
  for (int k = 0; k < step.count; ++k) give_back(step.operands[k]);
  step.out = take_scratch();
  steps_.push_back(step);
  return ~step.out;
}

void TreeSum::evaluate(std::span<const float* const> leaf, float* result, size_t count) const {
  CHECK(leaf.size() == leaves_, "{} leaves given, {} planned", leaf.size(), leaves_);
  alignas(64) float scratch[kMaxScratch][kTreeBlock];
  for (size_t begin = 0; begin < count; begin += kTreeBlock) {
    const size_t n = std::min(kTreeBlock, count - begin);
    const auto at = [&](int operand) {
      return operand >= 0 ? leaf[static_cast<size_t>(operand)] + begin : scratch[~operand];
    };
    for (const Step& step : steps_) {
      float* out = &step == &steps_.back() ? result + begin : scratch[step.out];
      const float* a = at(step.operands[0]);
      switch (step.count) {
        case 1:
          if (a != out) std::memcpy(out, a, n * sizeof(float));
          break;
        case 2: add2(a, at(step.operands[1]), out, n); break;
        case 3: add3(a, at(step.operands[1]), at(step.operands[2]), out, n); break;
        default:
          add4(a, at(step.operands[1]), at(step.operands[2]), at(step.operands[3]), out, n);
          break;
      }
    }
  }
}

double TreeSum::evaluate(std::span<const double> leaf) const {
  CHECK(leaf.size() == leaves_, "{} leaves given, {} planned", leaf.size(), leaves_);
  std::array<double, kMaxScratch> scratch{};
  double result = 0;
  for (const Step& step : steps_) {
    double v[4] = {};
    for (int k = 0; k < step.count; ++k)
      v[k] = step.operands[k] >= 0 ? leaf[static_cast<size_t>(step.operands[k])]
                                   : scratch[static_cast<size_t>(~step.operands[k])];
    result = step.count == 1   ? v[0]
             : step.count == 2 ? v[0] + v[1]
             : step.count == 3 ? (v[0] + v[1]) + v[2]
                               : (v[0] + v[1]) + (v[2] + v[3]);
    scratch[static_cast<size_t>(step.out)] = result;
  }
  return result;
}

std::string TreeSum::to_string() const {
  std::vector<std::string> scratch(static_cast<size_t>(scratch_blocks_) + 1);
  std::string text;
  for (const Step& step : steps_) {
    std::string v[4];
    for (int k = 0; k < step.count; ++k)
      v[k] = step.operands[k] >= 0 ? std::to_string(step.operands[k])
                                   : scratch[static_cast<size_t>(~step.operands[k])];
    text = step.count == 1   ? v[0]
           : step.count == 2 ? fmt::format("({}+{})", v[0], v[1])
           : step.count == 3 ? fmt::format("(({}+{})+{})", v[0], v[1], v[2])
                             : fmt::format("(({}+{})+({}+{}))", v[0], v[1], v[2], v[3]);
    scratch[static_cast<size_t>(step.out)] = text;
  }
  return text;
}

}  // namespace tutti::comm
