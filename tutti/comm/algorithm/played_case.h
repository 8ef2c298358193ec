#pragma once
// A collective of all ranks with its memory, for tests: played and compared with plain arithmetic.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/play.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {

/// Gives part p p+1 shares.
inline std::vector<Slice> uneven_parts(size_t count, int ranks) {
  std::vector<Slice> parts;
  const auto n = static_cast<size_t>(ranks);
  for (size_t p = 0, begin = 0; p < n; ++p) {
    const size_t end = count * (p + 1) * (p + 2) / (n * (n + 1));
    parts.push_back({begin, end - begin});
    begin = end;
  }
  return parts;
}

struct Case {
  Collective kind = Collective::barrier;
  int ranks = 1;
  size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool wide = false;
  bool mean = false;
  bool ordered = false;
  bool equal = false;  ///< parts and blocks, as balanced_parts(); otherwise uneven_parts()
  bool shared_output = false;
  std::vector<int> node_of = {};
  std::vector<int> first = {};  ///< as Leaves::first

  Leaves leaves() const {
    if (first.empty()) return {};
    return {.replicas = first.back(), .first = first, .stride = count + 3};
  }

  Task task(int rank) const {
    Task task;
    task.kind = kind, task.rank = rank, task.ranks = ranks, task.root = root, task.count = count;
    task.wide = wide, task.mean = mean, task.ordered = ordered, task.node_of = node_of;
    task.shared_output = shared_output, task.leaves = leaves();
    task.parts = equal ? balanced_parts(count, ranks) : uneven_parts(count, ranks);
    if (kind != Collective::all_to_all) return task;
    size_t sent = 0, received = 0;
    for (int q = 0; q < ranks; ++q) {
      task.sends.push_back({sent, block(rank, q)});
      task.receives.push_back({received, block(q, rank)});
      sent += block(rank, q), received += block(q, rank);
    }
    if (equal) task.equal_blocks = true, task.count = sent, task.parts.clear();
    return task;
  }
  size_t block(int from, int to) const {
    if (equal) return count / static_cast<size_t>(ranks);
    return (count + static_cast<size_t>(3 * from + 5 * to)) % 17 % (count + 1);
  }

  std::string name() const {
    std::string text =
        fmt::format("{} ranks {} count {} root {}", name_of(kind), ranks, count, root);
    const auto add = [&](bool given, const char* what) { text += given ? what : ""; };
    add(in_place, " in place"), add(wide, " wide"), add(mean, " mean");
    add(ordered, " ordered"), add(equal, " equal"), add(shared_output, " shared");
    if (ranks > 100) return text;
    if (!node_of.empty()) text += fmt::format(" nodes {}", fmt::join(node_of, " "));
    if (!first.empty()) text += fmt::format(" leaves {}", fmt::join(first, " "));
    return text;
  }
};

/// The inputs of all ranks, and the expected results.
class CaseAnswer {
 public:
  /// `whole`: values are numbers whose sums are exact in any order. Otherwise they have different
  /// sizes, so that another order gives other bits. All are exact in bf16.
  CaseAnswer(const Case& c, bool whole) : c_(c), whole_(whole), leaves_(c.leaves()) {
    for (int p = 0; p < c.ranks; ++p) tasks_.push_back(c.task(p));
    if (reduces(c.kind))
      for (size_t i = 0; i < c.count; ++i) sums_.push_back(finished(sum(everything(), i)));
  }
  const Task& task(int rank) const { return tasks_[static_cast<size_t>(rank)]; }

  /// Returns element i of the part that is `node` of the tree.
  float value(Range node, size_t i) const {
    // SplitMix64's finaliser: there are millions of values.
    uint64_t x =
        (static_cast<uint64_t>(node.size()) << 48 ^ static_cast<uint64_t>(node.lo) << 24 ^ i) +
        0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    if (whole_) return static_cast<float>(x % 9) - 4;
    const float fraction = 1 + static_cast<float>(x >> 8 & 127) / 128;
    return std::ldexp((x & 1) != 0 ? fraction : -fraction, static_cast<int>((x >> 20) % 12));
  }
  float value(int rank, size_t i) const { return value(Range{rank, rank + 1}, i); }

  Board board(int rank) const {
    const Task& task = this->task(rank);
    const bool root = rank == c_.root;
    Board board;
    board.wide = c_.wide, board.in_place = c_.in_place;
    size_t in = c_.count, out = c_.count;
    switch (c_.kind) {
      case Collective::barrier: in = out = 0; break;
      case Collective::broadcast: in = root ? in : 0; break;
      case Collective::reduce: out = root ? out : 0; break;
      case Collective::allreduce: break;
      case Collective::reduce_scatter: out = task.part().count; break;
      case Collective::allgather: in = task.part().count; break;
      case Collective::gather: in = task.part().count, out = root ? out : 0; break;
      case Collective::scatter: in = root ? in : 0, out = task.part().count; break;
      case Collective::all_to_all: in = task.sends.back().end(), out = task.receives.back().end();
    }
    board.output.assign(out, std::nanf(""));
    for (size_t i = 0; i < in; ++i) board.input.push_back(value(rank, i));
    if (!c_.first.empty()) {
      const std::vector<Range> parts = parts_of(rank);
      board.input.assign((parts.size() - 1) * leaves_.stride + c_.count, std::nanf(""));
      for (size_t k = 0; k < parts.size(); ++k)
        for (size_t i = 0; i < c_.count; ++i)
          board.input[k * leaves_.stride + i] = value(parts[k], i);
    }
    if (c_.in_place) board.output = board.input;
    return board;
  }

  /// Returns the first difference; empty when all is right.
  std::string compare(int rank, const std::vector<float>& output) const {
    const Task& task = this->task(rank);
    const Slice mine = task.parts.empty() ? Slice{} : task.part();
    std::string wrong;
    const auto same = [&](size_t i, float want) {
      if (wrong.empty() && std::bit_cast<uint32_t>(output[i]) != std::bit_cast<uint32_t>(want))
        wrong = fmt::format("rank {} element {}: {} for {}{}", rank, i, output[i], want,
                            whole_ ? "" : ", or in another order");
    };
    const bool without =
        rank != c_.root && (c_.kind == Collective::reduce || c_.kind == Collective::gather);
    switch (c_.kind) {
      case Collective::barrier: break;
      case Collective::broadcast:
        for (size_t i = 0; i < c_.count; ++i) same(i, value(c_.root, i));
        break;
      case Collective::reduce:
      case Collective::allreduce:
        for (size_t i = 0; i < c_.count && !without; ++i) same(i, sums_[i]);
        break;
      case Collective::reduce_scatter:
        for (size_t i = 0; i < mine.count; ++i) same(i, sums_[mine.begin + i]);
        break;
      case Collective::gather:
      case Collective::allgather:
        for (int p = 0; p < c_.ranks && !without; ++p) {
          const Slice part = task.part(p);
          for (size_t i = 0; i < part.count; ++i) same(part.begin + i, value(p, i));
        }
        break;
      case Collective::scatter:
        for (size_t i = 0; i < mine.count; ++i) same(i, value(c_.root, mine.begin + i));
        break;
      case Collective::all_to_all:
        for (int p = 0; p < c_.ranks; ++p) {
          const Slice sent = this->task(p).sent_to(rank), got = task.received_from(p);
          for (size_t i = 0; i < got.count; ++i) same(got.begin + i, value(p, sent.begin + i));
        }
    }
    return wrong;
  }

 private:
  Range everything() const { return {0, c_.first.empty() ? c_.ranks : leaves_.replicas}; }
  std::vector<Range> parts_of(int rank) const {
    const auto p = static_cast<size_t>(rank);
    return maximal_subtrees(leaves_.replicas, {leaves_.first[p], leaves_.first[p + 1]});
  }
  bool is_part(Range node) const {
    if (c_.first.empty()) return node.size() == 1;
    const auto owner = [&](int leaf) { return std::ranges::upper_bound(c_.first, leaf); };
    return owner(node.lo) == owner(node.hi - 1);
  }
  float sum(Range node, size_t i) const {
    if (is_part(node)) return value(node, i);
    const int mid = split_point(node);
    return sum({node.lo, mid}, i) + sum({mid, node.hi}, i);
  }
  float finished(float sum) const {
    if (c_.mean) sum /= static_cast<float>(c_.ranks);
    return c_.wide ? static_cast<float>(bf16(sum)) : sum;
  }

  Case c_;
  bool whole_;
  Leaves leaves_;
  std::vector<Task> tasks_;
  std::vector<float> sums_;
};

/// Plays the case and compares. Returns an error; empty when all is right.
inline std::string play(const Algorithm& algorithm, const Case& c, bool whole) {
  const CaseAnswer answer(c, whole);
  std::vector<Schedule> schedules;
  std::vector<Board> boards;
  for (int rank = 0; rank < c.ranks; ++rank) {
    schedules.push_back(make_schedule(algorithm, answer.task(rank)));
    boards.push_back(answer.board(rank));
  }
  std::vector<std::vector<float>> of_node(static_cast<size_t>(count_nodes(c.node_of)),
                                          std::vector<float>(c.count, std::nanf("")));
  for (size_t r = 0; r < boards.size() && c.shared_output; ++r) {
    boards[r].shared = &of_node[c.node_of.empty() ? 0 : static_cast<size_t>(c.node_of[r])];
    const Slice mine = answer.task(static_cast<int>(r)).part();
    for (size_t i = 0; i < mine.count && c.kind == Collective::allgather; ++i)
      (*boards[r].shared)[mine.begin + i] = boards[r].input[i];
  }
  std::string wrong = Game(std::move(schedules), boards).play();
  for (int rank = 0; rank < c.ranks && wrong.empty(); ++rank)
    wrong = answer.compare(rank, boards[static_cast<size_t>(rank)].result());
  return wrong.empty() ? "" : fmt::format("{} {}: {}", algorithm.name, c.name(), wrong);
}

/// Does the same with all kinds of numbers that must come out exactly. A case that the algorithm
/// refuses counts as right.
inline std::string play(const Algorithm& algorithm, const Case& c) {
  const Task task = c.task(0);
  if (!refusal_of(algorithm, task).empty()) return "";
  std::string wrong = play(algorithm, c, true);
  if (wrong.empty() && reduces(c.kind) && algorithm.reproducible(task))
    wrong = play(algorithm, c, false);
  return wrong;
}

inline void expect_right(const Algorithm& algorithm, const Case& c) {
  const std::string wrong = play(algorithm, c);
  ASSERT_TRUE(wrong.empty()) << wrong;
}

inline std::string name_of_instance(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(info.param->name);
}

}  // namespace tutti::comm
