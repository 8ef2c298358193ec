#include "tutti/plan/memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tutti {
ArenaPlan plan_arena(std::span<const Lifetime> blocks) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::ranges::stable_sort(by_size, std::greater{}, [&](size_t i) { return blocks[i].bytes; });

  ArenaPlan plan{std::vector<size_t>(blocks.size()), 0};
  std::vector<size_t> placed;  // ordered by offset
  for (const size_t i : by_size) {
    size_t offset = 0;
    for (const size_t other : placed) {
      if (blocks[other].last < blocks[i].first || blocks[i].last < blocks[other].first) continue;
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

size_t arena_lower_bound(std::span<const Lifetime> blocks) {
  std::map<int, ptrdiff_t> change;
  for (const Lifetime& block : blocks) {
    change[block.first] += static_cast<ptrdiff_t>(aligned(block.bytes));
    change[block.last + 1] -= static_cast<ptrdiff_t>(aligned(block.bytes));
  }
  ptrdiff_t live = 0, most = 0;
  for (const auto& [moment, delta] : change) most = std::max(most, live += delta);
  return static_cast<size_t>(most);
}

}  // namespace tutti
