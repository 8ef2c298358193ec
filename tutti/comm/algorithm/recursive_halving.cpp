// Vector halving and doubling (Rabenseifner) along the tree of comm/schedule/tree.h.
//
// Up: two blocks of 2^k ranks become one; rank i and its partner i + 2^k exchange halves of what
// each of them holds and add. Where the right block is smaller, its holders give everything to the
// left and wait. After the last merge 2^floor(log2 n) ranks hold equal parts of the sum. Down: the
// same way back, without adding.
//
//   allreduce, n = 2^k   2 log2 n rounds,  sent 2 S (n-1)/n,  reduced S (n-1)/n
//   other n              at most 2 ceil(log2 n) rounds,  sent below 3 S,  reduced below S
//   reduce_scatter       up, and a round in which the parts go to whom they are for: at most
//                        1 + ceil(log2 n) rounds,  sent S for n = 2^k, otherwise below 2 S
//
// The ring's bandwidth in a logarithmic number of rounds, and messages: but where the right block
// is much smaller, its ranks give to left/right others. The order of the sum is the tree's, because
// near ranks are merged first. S = elements of the vector, n = ranks. After Rabenseifner,
// Optimization of collective reduction operations (2004).

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/tree_steps.h"

namespace tutti::comm {
namespace {

// What the i-th rank of a block of 2^levels holds: bit k of i says which half it kept at level k.
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
  Slice before, after;  // what this rank holds; after.count = 0 when it has given everything away
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

// What `level` moves from this rank to `peer` on the way up, and from `peer` to this rank on the
// way down.
Slice given(const Task& task, const Merge& merge, const Level& level, int peer) {
  if (merge.left.size() != merge.right.size())
    return held({0, task.count}, peer - merge.left.lo, floor_log2(merge.left.size()));
  const Slice kept = level.after;
  return kept.begin == level.before.begin
             ? Slice{kept.end(), level.before.end() - kept.end()}
             : Slice{level.before.begin, kept.begin - level.before.begin};
}

// The way up. Afterwards the ranks below bit_floor(n) hold the sum's slices held(), in `sum`.
void add_up(ScheduleBuilder& builder, const Task& task, const std::vector<Merge>& merges,
            const std::vector<Level>& levels, Block sum) {
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

void share_down(ScheduleBuilder& builder, const Task& task, const std::vector<Merge>& merges,
                const std::vector<Level>& levels) {
  for (size_t k = levels.size(); k-- > 0;) {
    const Level& level = levels[k];
    if (level.gives_to.empty() && level.takes_from.empty()) continue;
    builder.round();
    for (const int peer : level.takes_from) builder.send(peer, output(level.after));
    for (const int peer : level.gives_to)
      builder.receive(peer, output(given(task, merges[k], level, peer)));
  }
}

Slice common(Slice a, Slice b) {
  const size_t begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return begin < end ? Slice{begin, end - begin} : Slice{};
}

// Who holds element x after the way up, and what else.
std::pair<int, Slice> holder_of(const Task& task, size_t x) {
  Slice slice{0, task.count};
  int holder = 0;
  for (int k = 0; k < floor_log2(task.ranks); ++k) {
    const size_t half = slice.count / 2;
    if (x < slice.begin + half) {
      slice.count = half;
    } else {
      slice = {slice.begin + half, slice.count - half};
      holder |= 1 << k;
    }
  }
  return {holder, slice};
}

// The slices of the sum to whom they are for. A part lies in one slice or in a few.
void deal_out(ScheduleBuilder& builder, const Task& task, Block sum) {
  const int levels = floor_log2(task.ranks);
  const Slice mine = task.part();
  const auto own = [&](Slice slice) { return output({slice.begin - mine.begin, slice.count}); };
  Slice have{};
  Block done{};
  if (task.rank < 1 << levels) {
    have = held({0, task.count}, task.rank, levels);
    done = task.wide ? staging(builder.take_staging(have.count)) : within(sum, have);
    builder.finish(done, within(sum, have));
  }
  const auto at = [&](Slice slice) {
    return within(done, {slice.begin - have.begin, slice.count});
  };
  builder.round();
  for (auto part = std::ranges::upper_bound(task.parts, have.begin, {}, &Slice::end);
       part != task.parts.end() && part->begin < have.end(); ++part)
    if (const auto p = static_cast<int>(part - task.parts.begin()); p != task.rank)
      builder.send(p, at(common(*part, have)));
  for (size_t x = mine.begin; x < mine.end();) {
    const auto [holder, slice] = holder_of(task, x);
    const Slice piece = common(slice, mine);
    if (holder == task.rank)
      builder.copy(own(piece), at(piece));
    else
      builder.receive(holder, own(piece));
    x = slice.end();
  }
}

Schedule recursive_halving_schedule(const Task& task) {
  ScheduleBuilder builder(task, "recursive_halving");
  const bool scatter = task.kind == Collective::reduce_scatter;
  const Slice all{0, task.count};
  if (task.ranks == 1) {
    builder.finish(output(all), input(all));
    return builder.build();
  }
  const std::vector<Merge> merges = merges_of(task.rank, task.ranks);
  const std::vector<Level> levels = levels_of(task);
  const Block sum =
      scatter ? accumulator(builder.take_accumulator(task.count)) : builder.sum_of(task.count);
  add_up(builder, task, merges, levels, sum);
  if (scatter) {
    deal_out(builder, task, sum);
    return builder.build();
  }
  if (!levels.back().takes_from.empty())
    builder.finish(output(levels.back().after), within(sum, levels.back().after));
  share_down(builder, task, merges, levels);
  return builder.build();
}

// Closed for an allreduce of 2^k ranks; otherwise counted.
Steps recursive_halving_steps(const Task& task) {
  const double n = task.ranks;
  const double others = static_cast<double>(task.count) * (n - 1) / n;
  if (task.kind == Collective::allreduce && std::has_single_bit(static_cast<unsigned>(task.ranks)))
    return {2.0 * std::countr_zero(static_cast<unsigned>(task.ranks)), 2 * others, others};
  return count_busiest(recursive_halving_schedule, task);
}

std::string recursive_halving_refusal(const Task& task) {
  return task.kind == Collective::allreduce || task.kind == Collective::reduce_scatter
             ? ""
             : does_not_do("recursive_halving", task);
}

}  // namespace

const Algorithm recursive_halving{"recursive_halving", recursive_halving_refusal,
                                  recursive_halving_schedule, recursive_halving_steps,
                                  [](const Task&) { return true; }};

}  // namespace tutti::comm
