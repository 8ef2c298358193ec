// Binomial trees.
//
//   broadcast        ceil(log2 n) rounds,  sent S ceil(log2 n) by the root
//   reduce           ceil(log2 n) rounds,  received S ceil(log2 n) by the root,  reduced as much
//   gather, scatter  ceil(log2 n) rounds,  sent or received S (n-1)/n by the root
//
// All but broadcast walk the tree of comm/schedule/tree.h over the rank index. A block of ranks is
// represented by the root where it lies inside, and by its first rank elsewhere: so a reduction's
// order is the tree's for any root. S = elements of the vector, n = ranks.

#include <bit>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/tree_steps.h"

namespace tutti::comm {
namespace {

int speaker(const Task& task, Range ranks) {
  return ranks.lo <= task.root && task.root < ranks.hi ? task.root : ranks.lo;
}

// Over v = (rank - root) mod n: v's parent is v without its lowest bit. Large subtrees come first.
void build_broadcast(ScheduleBuilder& builder, const Task& task) {
  const int n = task.ranks;
  const int v = (task.rank - task.root + n) % n;
  const auto rank_of = [&](int virtual_rank) { return (virtual_rank + task.root) % n; };
  const int lowest = v == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) : v & -v;
  const Slice all{0, task.count};
  if (v != 0) builder.receive(rank_of(v - lowest), output(all));
  const Block known = v == 0 ? input(all) : output(all);
  for (int step = lowest / 2; step >= 1; step /= 2) {
    if (v + step >= n) continue;
    builder.round();
    builder.send(rank_of(v + step), known);
  }
  if (v == 0) builder.copy(output(all), input(all));
}

void reduce(ScheduleBuilder& builder, const Task& task) {
  const Slice all{0, task.count};
  Block known = input(all);
  Block sum{};
  Slice arriving_sum{}, arriving_leaf{};
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const int joint = speaker(task, {merge.left.lo, merge.right.hi});
    const int giver = speaker(task, joint >= merge.right.lo ? merge.left : merge.right);
    if (task.rank == giver) {
      builder.round();
      builder.send(joint, known);
      return;
    }
    if (task.rank != joint) continue;
    const bool leaf = merge.other(task.rank).size() == 1;
    Slice& place = leaf ? arriving_leaf : arriving_sum;
    if (place.count == 0)
      place = leaf ? builder.take_staging(task.count) : builder.take_accumulator(task.count);
    const Block arriving = leaf ? staging(place) : accumulator(place);
    // Only the root has an output.
    if (sum.count() == 0)
      sum = task.rank == task.root ? builder.sum_for(output(all))
                                   : builder.accumulator_for(task.count);
    builder.round();
    builder.receive(giver, arriving);
    builder.reduce(sum, known, arriving);
    known = sum;
  }
  builder.finish(output(all), known);
}

// Both directions pass the same blocks; a rank on the way keeps the data of its block of ranks in
// its staging, laid out as in the long buffer.
struct Passage {
  Merge merge;
  int upper, lower;  // the two speakers
  Slice block;       // block of the lower one, in the long buffer
};

std::vector<Passage> passages(const Task& task) {
  std::vector<Passage> all;
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const int upper = speaker(task, {merge.left.lo, merge.right.hi});
    const Range below = upper >= merge.right.lo ? merge.left : merge.right;
    const int lower = speaker(task, below);
    if (task.rank == upper || task.rank == lower)
      all.push_back({merge, upper, lower, joint_part(task, below)});
    if (task.rank == lower) break;
  }
  return all;
}

// The long buffer of this rank: the real one at the root, a copy of the needed piece elsewhere.
class LongBuffer {
 public:
  LongBuffer(ScheduleBuilder& builder, const Task& task, const std::vector<Passage>& steps,
             Space at_root) {
    if (task.rank == task.root) {
      base_ = {at_root, {0, task.count}};
      return;
    }
    Slice needed = task.part();
    if (!steps.empty() && steps.back().lower == task.rank) needed = steps.back().block;
    begin_ = needed.begin;
    base_ = builder.staging_for(needed.count);
  }
  Block at(Slice slice) const { return within(base_, {slice.begin - begin_, slice.count}); }

 private:
  Block base_;
  size_t begin_ = 0;
};

void gather(ScheduleBuilder& builder, const Task& task) {
  const std::vector<Passage> steps = passages(task);
  const LongBuffer buffer(builder, task, steps, Space::output);
  const Block mine = input({0, task.part().count});
  builder.copy(buffer.at(task.part()), mine);
  for (const Passage& step : steps) {
    builder.round();
    if (task.rank == step.upper)
      builder.receive(step.lower, buffer.at(step.block));
    else
      builder.send(step.upper, buffer.at(step.block));
  }
}

void scatter(ScheduleBuilder& builder, const Task& task) {
  const std::vector<Passage> steps = passages(task);
  const LongBuffer buffer(builder, task, steps, Space::input);
  for (size_t i = steps.size(); i-- > 0;) {
    builder.round();
    if (task.rank == steps[i].upper)
      builder.send(steps[i].lower, buffer.at(steps[i].block));
    else
      builder.receive(steps[i].upper, buffer.at(steps[i].block));
  }
  builder.round();
  builder.copy(output({0, task.part().count}), buffer.at(task.part()));
}

Schedule binomial_schedule(const Task& task) {
  ScheduleBuilder builder(task, "binomial");
  switch (task.kind) {
    case Collective::broadcast: build_broadcast(builder, task); break;
    case Collective::reduce: reduce(builder, task); break;
    case Collective::gather: gather(builder, task); break;
    case Collective::scatter: scatter(builder, task); break;
    default: break;
  }
  return builder.build();
}

Steps binomial_steps(const Task& task) {
  const double rounds = std::bit_width(static_cast<unsigned>(task.ranks) - 1U);
  const double n = task.ranks;
  const auto s = static_cast<double>(task.count);
  switch (task.kind) {
    case Collective::broadcast: return {rounds, s * rounds, 0};
    case Collective::reduce: return {rounds, s * rounds, s * rounds};
    default: return {rounds, s * (n - 1) / n, 0};
  }
}

std::string binomial_refusal(const Task& task) {
  switch (task.kind) {
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: return "";
    default: return does_not_do("binomial", task);
  }
}

}  // namespace

const Algorithm binomial{"binomial", binomial_refusal, binomial_schedule, binomial_steps,
                         [](const Task&) { return true; }};

}  // namespace tutti::comm
