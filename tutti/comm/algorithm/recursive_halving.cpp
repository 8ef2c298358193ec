// Vector halving and doubling (Rabenseifner) along the tree of comm/schedule/tree.h.
//
// Up: two blocks of 2^k ranks become one; rank i and its partner i + 2^k exchange halves of their
// slices and add. Where the right block is smaller, its holders give everything to the left and
// wait. After the last merge 2^floor(log2 n) ranks hold equal parts of the sum. Down: the same in
// reverse, without adding.
//
//   allreduce, n = 2^k   2 log2 n rounds,  sent 2 S (n-1)/n,  reduced S (n-1)/n
//   other n              at most 2 ceil(log2 n) rounds,  sent below 3 S,  reduced below S
//   reduce_scatter       up, and a round in which the parts go to their owners: at most
//                        1 + ceil(log2 n) rounds,  sent S for n = 2^k, otherwise below 2 S
//
// This has the ring's bandwidth in a logarithmic number of rounds, and of messages, except that
// ranks of a much smaller right block give to left/right others. The order of the sum is the
// tree's, because near ranks are merged first. S = elements of the vector, n = ranks. After
// Rabenseifner, Optimization of collective reduction operations (2004).

#include <bit>

#include "tutti/comm/algorithm/halving.h"

namespace tutti::comm {
namespace {

Schedule recursive_halving_schedule(const Task& task) {
  ScheduleBuilder builder(task, "recursive_halving");
  const Slice all{0, task.count};
  if (task.ranks == 1) {
    builder.finish(output(all), input(all));
    return builder.build();
  }
  const Holders holders{
      .columns = {all}, .ranks = task.ranks, .rank = [](size_t, int i) { return i; }};
  const Slice have = holders.held(0, task.rank);
  const bool scatter = task.kind == Collective::reduce_scatter;
  const Block sum = scatter ? builder.accumulator_for(task.count) : builder.sum_for(output(all));
  add_up(builder, task, sum);
  if (scatter) {
    deal_out(builder, task, holders, have, within(sum, have));
  } else {
    builder.finish(output(have), within(sum, have));
    share_down(builder, task);
  }
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
