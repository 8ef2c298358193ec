// Ring: a part travels once around all ranks, and each adds its own to it.
//
//   reduce_scatter  n-1 rounds,  sent S (n-1)/n,  reduced S (n-1)/n
//   allgather       n-1 rounds,  sent S (n-1)/n
//   allreduce       both, one after the other: 2 (n-1) rounds, sent 2 S (n-1)/n
//
// Each rank exchanges messages with two neighbours only, which suits any network and large vectors.
// The sum of part p begins at rank p+1 and ends at p, so its order depends on the part: it is not
// the tree's. S = elements of the vector, n = ranks. After Patarasu and Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations (2009).

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

struct RingNeighbours {
  explicit RingNeighbours(const Task& task)
      : left((task.rank + task.ranks - 1) % task.ranks), right((task.rank + 1) % task.ranks) {}
  int left, right;
};

Slice part_behind(const Task& task, int distance) {
  return task.parts[static_cast<size_t>((task.rank + 2 * task.ranks - distance) % task.ranks)];
}

// Two blocks alternate: one travels on while the other arrives.
void reduce_around(ScheduleBuilder& builder, const Task& task, Block to) {
  const RingNeighbours at(task);
  size_t largest = 0;
  for (const Slice& part : task.parts) largest = std::max(largest, part.count);
  const Slice halves[2] = {builder.take_accumulator(largest), builder.take_accumulator(largest)};
  Slice entry{};
  if (task.wide) entry = builder.take_staging(largest);  // the first block travels unsummed
  Block travelling = input(part_behind(task, 1));
  for (int t = 0; t < task.ranks - 1; ++t) {
    const Slice mine = part_behind(task, t + 2);
    const bool last = t == task.ranks - 2;
    const Block sum = last && !task.wide ? to : accumulator({halves[t % 2].begin, mine.count});
    const Block arriving = t == 0 && task.wide ? staging({entry.begin, mine.count})
                                               : accumulator({halves[t % 2].begin, mine.count});
    builder.round();
    builder.receive(at.left, arriving);
    builder.send(at.right, travelling);
    builder.reduce(sum, arriving, input(mine));
    if (last) builder.finish(to, sum);
    travelling = sum;
  }
}

void share_around(ScheduleBuilder& builder, const Task& task) {
  const RingNeighbours at(task);
  for (int t = 0; t < task.ranks - 1; ++t) {
    builder.round();
    builder.receive(at.left, output(part_behind(task, t + 1)));
    builder.send(at.right, output(part_behind(task, t)));
  }
}

Schedule ring_schedule(const Task& task) {
  ScheduleBuilder builder(task, "ring");
  const bool alone = task.ranks == 1;
  if (task.kind == Collective::allgather) {
    builder.copy(output(task.part()), input({0, task.part().count}));
  } else {
    const Block to =
        output(task.kind == Collective::allreduce ? task.part() : Slice{0, task.part().count});
    if (alone)
      builder.finish(to, input(task.part()));
    else
      reduce_around(builder, task, to);
  }
  if (task.kind != Collective::reduce_scatter) share_around(builder, task);
  return builder.build();
}

Steps ring_steps(const Task& task) {
  const double n = task.ranks;
  const double others = static_cast<double>(task.count) * (n - 1) / n;
  if (task.kind == Collective::allreduce) return {2 * (n - 1), 2 * others, others};
  return {n - 1, others, task.kind == Collective::reduce_scatter ? others : 0};
}

std::string ring_refusal(const Task& task) {
  return task.kind == Collective::allreduce || task.kind == Collective::reduce_scatter ||
                 task.kind == Collective::allgather
             ? ""
             : does_not_do("ring", task);
}

// a + b is b + a: with two ranks every order is the tree's.
bool ring_reproducible(const Task& task) { return !reduces(task.kind) || task.ranks <= 2; }

}  // namespace

const Algorithm ring{"ring", ring_refusal, ring_schedule, ring_steps, ring_reproducible};

}  // namespace tutti::comm
