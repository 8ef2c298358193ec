#include "tutti/plan/memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace tutti::plan {

bool Lifetime::meets(const Lifetime& other) const {
  return std::ranges::any_of(when, [&](const Moments& a) {
    return std::ranges::any_of(
        other.when, [&](const Moments& b) { return a.first <= b.last && b.first <= a.last; });
  });
}

ArenaPlan plan_arena(std::span<const Lifetime> blocks) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::greater{}, [&](size_t i) { return blocks[i].bytes; });

  ArenaPlan plan{std::vector<size_t>(blocks.size()), 0};
  std::vector<size_t> placed;  // ordered by offset
  for (const size_t i : by_size) {
    size_t offset = 0;
    for (const size_t other : placed) {
      if (!blocks[i].meets(blocks[other])) continue;
      if (offset + aligned(blocks[i].bytes) <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + aligned(blocks[other].bytes));
    }
    plan.offsets[i] = offset;
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, [&](size_t p) { return plan.offsets[p]; }), i);
    plan.bytes = std::max(plan.bytes, offset + aligned(blocks[i].bytes));
  }
  return plan;
}

ArenaPeak arena_peak(std::span<const Lifetime> blocks) {
  std::map<int, ptrdiff_t> change;
  for (const Lifetime& block : blocks)
    for (const Moments& when : block.when) {
      change[when.first] += static_cast<ptrdiff_t>(aligned(block.bytes));
      if (when.last < std::numeric_limits<int>::max())
        change[when.last + 1] -= static_cast<ptrdiff_t>(aligned(block.bytes));
    }
  ArenaPeak peak;
  ptrdiff_t live = 0;
  for (const auto& [moment, delta] : change)
    if ((live += delta) > static_cast<ptrdiff_t>(peak.bytes))
      peak = {moment, static_cast<size_t>(live)};
  return peak;
}

size_t bytes_at(std::span<const Lifetime> blocks, int moment) {
  size_t bytes = 0;
  for (const Lifetime& block : blocks)
    for (const Moments& when : block.when)
      if (when.first <= moment && moment <= when.last) bytes += aligned(block.bytes);
  return bytes;
}

}  // namespace tutti::plan
