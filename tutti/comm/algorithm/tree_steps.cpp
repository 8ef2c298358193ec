#include "tutti/comm/algorithm/tree_steps.h"

#include <algorithm>

namespace tutti::comm {
namespace {

// Inner nodes come and go like a stack: the right operand is free once it is added.
class TreeAdder {
 public:
  TreeAdder(ScheduleBuilder& builder, const std::vector<TreeLeaf>& leaves)
      : builder_(builder), leaves_(leaves) {}

  void add(Range node, Block to) {
    const int mid = split_point(node);
    const Block left = value({node.lo, mid}, 2 * depth_, to);
    const Block right = value({mid, node.hi}, 2 * depth_ + 1, to);
    builder_.reduce(to, left, right);
  }

 private:
  Block value(Range node, int slot, Block like) {
    const auto leaf =
        std::ranges::lower_bound(leaves_, node.lo, {}, [](const TreeLeaf& l) { return l.node.lo; });
    if (leaf != leaves_.end() && leaf->node == node) return leaf->block;
    while (static_cast<int>(slots_.size()) <= slot)
      slots_.push_back(builder_.accumulator_for(like.count()));
    const Block to = slots_[static_cast<size_t>(slot)];
    ++depth_;
    add(node, to);
    --depth_;
    return to;
  }

  ScheduleBuilder& builder_;
  const std::vector<TreeLeaf>& leaves_;
  std::vector<Block> slots_;
  int depth_ = 0;
};

}  // namespace

std::vector<Merge> merges_of(int rank, int ranks) {
  std::vector<Merge> all;
  for (Range node{0, ranks}; node.size() > 1;) {
    const int mid = split_point(node);
    all.push_back({{node.lo, mid}, {mid, node.hi}});
    node = all.back().mine(rank);
  }
  std::ranges::reverse(all);
  return all;
}

TreePartners partners_of(const Merge& merge, int rank) {
  const Range mine = merge.mine(rank);
  const Range other = merge.other(rank);
  const int place = rank - mine.lo;
  TreePartners partners{.receive_from = other.lo + place % other.size(), .send_to = {}};
  for (int p = place; p < other.size(); p += mine.size()) partners.send_to.push_back(other.lo + p);
  return partners;
}

Slice joint_part(const Task& task, Range ranks) {
  const size_t begin = task.part(ranks.lo).begin;
  return {begin, task.part(ranks.hi - 1).end() - begin};
}

void add_tree(ScheduleBuilder& builder, const std::vector<TreeLeaf>& leaves, Block to) {
  if (to.count() == 0) return;
  if (leaves.size() == 1)
    builder.copy(to, leaves[0].block);
  else
    TreeAdder(builder, leaves).add({leaves.front().node.lo, leaves.back().node.hi}, to);
}

}  // namespace tutti::comm
