#include "tutti/comm/algorithm/halving.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/comm/algorithm/tree_steps.h"

namespace tutti::comm {
namespace {

// Returns the slice of the i-th rank of a block of 2^levels: bit k of i says which half it kept at
// level k.
Slice held(Slice whole, int i, int levels) {
  for (int k = 0; k < levels; ++k) {
    const size_t half = whole.count / 2;
    whole = (i >> k & 1) == 0 ? Slice{whole.begin, half}
                              : Slice{whole.begin + half, whole.count - half};
  }
  return whole;
}

int floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

// One merge seen from one rank.
struct Level {
  std::vector<int> gives_to;    // the peers that take over a part of what this rank holds
  std::vector<int> takes_from;  // at most one
  Slice before, after;  // this rank's slices; after.count = 0 when it has given everything away
};

std::vector<Level> levels_of(const Task& task) {
  std::vector<Level> all;
  const Slice whole{0, task.count};
  bool holds = true;
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const Range mine = merge.mine(task.rank);
    const int place = task.rank - mine.lo;
    const int left_levels = floor_log2(merge.left.size());
    const int right_levels = floor_log2(merge.right.size());
    Level level;
    if (holds) level.before = held(whole, place, floor_log2(mine.size()));
    if (merge.left.size() == merge.right.size()) {
      const int partner = merge.other(task.rank).lo + place;
      level.gives_to = level.takes_from = {partner};
      level.after = held(whole, task.rank - merge.left.lo, left_levels + 1);
    } else if (mine == merge.left) {
      level.takes_from = {merge.right.lo + place % (1 << right_levels)};
      level.after = level.before;
    } else {
      if (holds)
        for (int p = place; p < merge.left.size(); p += 1 << right_levels)
          level.gives_to.push_back(merge.left.lo + p);
      holds = false;
    }
    all.push_back(std::move(level));
  }
  return all;
}

// Returns the slice that `level` moves from this rank to `peer` on the way up, and from `peer` to
// this rank on the way down.
Slice given(const Task& task, const Merge& merge, const Level& level, int peer) {
  if (merge.left.size() != merge.right.size())
    return held({0, task.count}, peer - merge.left.lo, floor_log2(merge.left.size()));
  const Slice kept = level.after;
  return kept.begin == level.before.begin
             ? Slice{kept.end(), level.before.end() - kept.end()}
             : Slice{level.before.begin, kept.begin - level.before.begin};
}

Slice common(Slice a, Slice b) {
  const size_t begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return begin < end ? Slice{begin, end - begin} : Slice{};
}

// Returns the rank that holds element x, and its slice.
std::pair<int, Slice> holder_of(const Holders& holders, size_t x) {
  const auto column = std::ranges::upper_bound(holders.columns, x, {}, &Slice::end);
  Slice slice = *column;
  int i = 0;
  for (int k = 0; k < floor_log2(holders.ranks); ++k) {
    const size_t half = slice.count / 2;
    if (x < slice.begin + half) {
      slice.count = half;
    } else {
      slice = {slice.begin + half, slice.count - half};
      i |= 1 << k;
    }
  }
  return {holders.rank(static_cast<size_t>(column - holders.columns.begin()), i), slice};
}

// Calls body(holder, piece) for the pieces of `part`.
template <class Body>
void for_each_piece(const Holders& holders, Slice part, Body body) {
  for (size_t x = part.begin; x < part.end();) {
    const auto [holder, slice] = holder_of(holders, x);
    body(holder, common(slice, part));
    x = slice.end();
  }
}

// Calls body(rank, piece) for the pieces of `have` that are other ranks' parts.
template <class Body>
void for_each_owner(const Task& task, Slice have, Body body) {
  for (auto part = std::ranges::upper_bound(task.parts, have.begin, {}, &Slice::end);
       part != task.parts.end() && part->begin < have.end(); ++part)
    if (const auto p = static_cast<int>(part - task.parts.begin()); p != task.rank)
      body(p, common(*part, have));
}

}  // namespace

void add_up(ScheduleBuilder& builder, const Task& task, Block sum) {
  const std::vector<Merge> merges = merges_of(task.rank, task.ranks);
  const std::vector<Level> levels = levels_of(task);
  Block known = input({0, task.count});
  Slice leaf_place{}, sum_place{};
  for (size_t k = 0; k < levels.size(); ++k) {
    const Level& level = levels[k];
    if (level.gives_to.empty() && level.takes_from.empty()) continue;
    builder.round();
    for (const int peer : level.gives_to)
      builder.send(peer, within(known, given(task, merges[k], level, peer)));
    for (const int peer : level.takes_from) {
      const bool leaf = merges[k].other(task.rank).size() == 1;
      Slice& place = leaf ? leaf_place : sum_place;
      if (place.count < level.after.count)
        place = leaf ? builder.take_staging(level.after.count)
                     : builder.take_accumulator(level.after.count);
      const Slice here{place.begin, level.after.count};
      const Block arriving = leaf ? staging(here) : accumulator(here);
      builder.receive(peer, arriving);
      builder.reduce(within(sum, level.after), within(known, level.after), arriving);
    }
    known = sum;
  }
}

void share_down(ScheduleBuilder& builder, const Task& task) {
  const std::vector<Merge> merges = merges_of(task.rank, task.ranks);
  const std::vector<Level> levels = levels_of(task);
  for (size_t k = levels.size(); k-- > 0;) {
    const Level& level = levels[k];
    if (level.gives_to.empty() && level.takes_from.empty()) continue;
    builder.round();
    for (const int peer : level.takes_from) builder.send(peer, output(level.after));
    for (const int peer : level.gives_to)
      builder.receive(peer, output(given(task, merges[k], level, peer)));
  }
}

Slice Holders::held(size_t column, int i) const {
  const int levels = floor_log2(ranks);
  return i < 1 << levels ? comm::held(columns[column], i, levels) : Slice{columns[column].begin, 0};
}

void deal_out(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have,
              Block sum) {
  const Slice mine = task.part();
  const Block done = task.wide ? builder.staging_for(have.count) : sum;
  builder.finish(done, sum);
  const auto at = [&](Slice slice) {
    return within(done, {slice.begin - have.begin, slice.count});
  };
  const auto own = [&](Slice slice) { return output({slice.begin - mine.begin, slice.count}); };
  builder.round();
  for_each_owner(task, have, [&](int owner, Slice piece) { builder.send(owner, at(piece)); });
  for_each_piece(holders, mine, [&](int holder, Slice piece) {
    if (holder == task.rank)
      builder.copy(own(piece), at(piece));
    else
      builder.receive(holder, own(piece));
  });
}

void deal_in(ScheduleBuilder& builder, const Task& task, const Holders& holders, Slice have) {
  const Slice mine = task.part();
  const auto own = [&](Slice slice) { return input({slice.begin - mine.begin, slice.count}); };
  builder.round();
  for_each_owner(task, have,
                 [&](int owner, Slice piece) { builder.receive(owner, output(piece)); });
  for_each_piece(holders, mine, [&](int holder, Slice piece) {
    if (holder == task.rank)
      builder.copy(output(piece), own(piece));
    else
      builder.send(holder, own(piece));
  });
}

}  // namespace tutti::comm
