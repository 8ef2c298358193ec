// Recursive doubling along the tree of comm/schedule/tree.h: two neighbouring blocks of ranks
// exchange their data, and become one.
//
//   allreduce  ceil(log2 n) rounds,  sent S ceil(log2 n),  reduced S ceil(log2 n)
//   allgather  ceil(log2 n) rounds,  sent S (n-1)/n
//   barrier    ceil(log2 n) rounds
//
// This takes the fewest rounds, so it is for small vectors. Any number of ranks: where the right
// block is smaller, its ranks send to several ranks of the left (the formulas then hold for the
// other ranks; see recursive_doubling_steps()). The order of the sum is the tree's. S = elements of
// the vector, n = ranks. After Thakur, Rabenseifner and Gropp, Optimization of collective
// communication operations in MPICH (2005).

#include <bit>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/tree_steps.h"

namespace tutti::comm {
namespace {

// At a leaf a rank's sum is still its input alone, of the collective's own type.
bool is_leaf(Range node) { return node.size() == 1; }

void allreduce(ScheduleBuilder& builder, const Task& task) {
  const Slice all{0, task.count};
  const Block sum = task.ranks > 1 ? builder.sum_for(output(all)) : output(all);
  Slice arriving_sum{}, arriving_leaf{};
  Block known = input(all);
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const TreePartners partners = partners_of(merge, task.rank);
    const bool leaf = is_leaf(merge.other(task.rank));
    Slice& place = leaf ? arriving_leaf : arriving_sum;
    if (place.count == 0)
      place = leaf ? builder.take_staging(task.count) : builder.take_accumulator(task.count);
    const Block arriving = leaf ? staging(place) : accumulator(place);
    builder.round();
    builder.receive(partners.receive_from, arriving);
    for (const int peer : partners.send_to) builder.send(peer, known);
    // The left side's sum is always the first operand, so that a NaN has the same bits everywhere.
    if (task.rank < merge.left.hi)
      builder.reduce(sum, known, arriving);
    else
      builder.reduce(sum, arriving, known);
    known = sum;
  }
  builder.finish(output(all), known);
}

void allgather(ScheduleBuilder& builder, const Task& task) {
  builder.copy(output(task.part()), input({0, task.part().count}));
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const TreePartners partners = partners_of(merge, task.rank);
    builder.round();
    builder.receive(partners.receive_from, output(joint_part(task, merge.other(task.rank))));
    for (const int peer : partners.send_to)
      builder.send(peer, output(joint_part(task, merge.mine(task.rank))));
  }
}

void barrier(ScheduleBuilder& builder, const Task& task) {
  for (const Merge& merge : merges_of(task.rank, task.ranks)) {
    const TreePartners partners = partners_of(merge, task.rank);
    builder.round();
    builder.await(partners.receive_from);
    for (const int peer : partners.send_to) builder.signal(peer);
  }
}

Schedule recursive_doubling_schedule(const Task& task) {
  ScheduleBuilder builder(task, "recursive_doubling");
  if (task.kind == Collective::allreduce)
    allreduce(builder, task);
  else if (task.kind == Collective::allgather)
    allgather(builder, task);
  else
    barrier(builder, task);
  return builder.build();
}

// Closed for powers of two; otherwise counted.
Steps recursive_doubling_steps(const Task& task) {
  const double n = task.ranks;
  const auto s = static_cast<double>(task.count);
  if (std::has_single_bit(static_cast<unsigned>(task.ranks))) {
    const double rounds = std::countr_zero(static_cast<unsigned>(task.ranks));
    if (task.kind == Collective::barrier) return {rounds, 0, 0};
    if (task.kind == Collective::allgather) return {rounds, s * (n - 1) / n, 0};
    return {rounds, s * rounds, s * rounds};
  }
  return count_busiest(recursive_doubling_schedule, task);
}

std::string recursive_doubling_refusal(const Task& task) {
  return task.kind == Collective::allreduce || task.kind == Collective::allgather ||
                 task.kind == Collective::barrier
             ? ""
             : does_not_do("recursive_doubling", task);
}

}  // namespace

const Algorithm recursive_doubling{"recursive_doubling", recursive_doubling_refusal,
                                   recursive_doubling_schedule, recursive_doubling_steps,
                                   [](const Task&) { return true; }};

}  // namespace tutti::comm
