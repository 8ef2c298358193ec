// Bruck's algorithm: blocks travel in hops of powers of two, each together with all others that
// take the same hop.
//
//   all_to_all  equal blocks;  ceil(log2 n) rounds of one message,
//               sent S/n times the numbers below n with bit k set, summed over the bits: S/2 log2 n
//               for n = 2^k
//
// For small blocks among many ranks: n-1 messages would cost more than sending each byte log2 n / 2
// times. S = elements of the vector, n = ranks. After Bruck, Ho, Kipnis, Upfal and Weathersby,
// Efficient algorithms for all-to-all communications in multiport message-passing systems (1997).

#include <algorithm>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

// Distances i in [begin, end) below n whose bit k (hop = 2^k) is set, as ranges.
template <class Body>
void for_each_run(int n, int hop, Body body) {
  for (int begin = hop; begin < n; begin += 2 * hop) body(begin, std::min(begin + hop, n));
}

int blocks_sent(int n, int hop) {
  int blocks = 0;
  for_each_run(n, hop, [&](int begin, int end) { blocks += end - begin; });
  return blocks;
}

// Block i of `kept` is at first the block for the rank i to the right, and at last the block from
// the rank i to the left: it moves 2^k ranks to the right for each bit k of i.
Schedule bruck_schedule(const Task& task) {
  ScheduleBuilder builder(task, "bruck");
  const int n = task.ranks;
  const size_t block = task.count / static_cast<size_t>(n);
  const auto blocks = [&](Slice area, int begin, int number) {
    return staging(
        {area.begin + static_cast<size_t>(begin) * block, static_cast<size_t>(number) * block});
  };
  const auto area_of = [&](int number) {
    return builder.take_staging(static_cast<size_t>(number) * block);
  };
  builder.copy(output(task.received_from(task.rank)), input(task.sent_to(task.rank)));
  const Slice kept = area_of(n), arriving = area_of(n / 2),
              leaving[2] = {area_of(n / 2), area_of(n / 2)};
  const auto given = [&](int begin, int number) {
    return input({static_cast<size_t>(begin) * block, static_cast<size_t>(number) * block});
  };
  builder.copy(blocks(kept, 0, n - task.rank), given(task.rank, n - task.rank));
  builder.copy(blocks(kept, n - task.rank, task.rank), given(0, task.rank));
  int turn = 0;  // one buffer is filled while the other leaves
  const auto pack = [&](int hop) {
    int packed = 0;
    for_each_run(n, hop, [&](int begin, int end) {
      builder.copy(blocks(leaving[turn], packed, end - begin), blocks(kept, begin, end - begin));
      packed += end - begin;
    });
  };
  pack(1);
  for (int hop = 1; hop < n; hop *= 2) {
    const int sent = blocks_sent(n, hop);
    builder.round();
    builder.receive((task.rank - hop + n) % n, blocks(arriving, 0, sent));
    builder.send((task.rank + hop) % n, blocks(leaving[turn], 0, sent));
    int unpacked = 0;
    for_each_run(n, hop, [&](int begin, int end) {
      // Blocks of the first run have no higher bits: they have arrived.
      for (int i = begin; begin == hop && i < end; ++i)
        builder.copy(output(task.received_from((task.rank - i + n) % n)),
                     blocks(arriving, i - begin, 1));
      if (begin > hop)
        builder.copy(blocks(kept, begin, end - begin), blocks(arriving, unpacked, end - begin));
      unpacked += end - begin;
    });
    turn = 1 - turn;
    if (2 * hop < n) pack(2 * hop);
  }
  return builder.build();
}

Steps bruck_steps(const Task& task) {
  Steps steps;
  const double block = static_cast<double>(task.count) / task.ranks;
  for (int hop = 1; hop < task.ranks; hop *= 2, ++steps.rounds)
    steps.moved += block * blocks_sent(task.ranks, hop);
  return steps;
}

std::string bruck_refusal(const Task& task) {
  if (task.kind != Collective::all_to_all) return does_not_do("bruck", task);
  return task.equal_blocks ? "" : "bruck needs an all_to_all of equal blocks";
}

}  // namespace

const Algorithm bruck{"bruck", bruck_refusal, bruck_schedule, bruck_steps,
                      [](const Task&) { return true; }};

}  // namespace tutti::comm
