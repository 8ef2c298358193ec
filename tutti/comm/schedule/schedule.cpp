#include "tutti/comm/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {
namespace {

constexpr std::array<std::string_view, kCollectives> kCollectiveNames{
    "barrier",   "broadcast", "reduce",  "allreduce", "reduce_scatter",
    "allgather", "gather",    "scatter", "all_to_all"};
constexpr size_t kLine = 16;  // elements: a cache line of floats

std::string text(Block block) {
  static constexpr std::array<const char*, 4> kSpaces{"input", "output", "staging", "accumulator"};
  if (block.count() == 0) return "nothing";
  return fmt::format("{}[{}..{}]", kSpaces[static_cast<size_t>(block.space)], block.slice.begin,
                     block.slice.end() - 1);
}

std::string text(const LocalStep& step) {
  switch (step.kind) {
    case LocalStep::Kind::copy: return fmt::format("{} = {}", text(step.to), text(step.a));
    case LocalStep::Kind::reduce:
      return fmt::format("{} = {} + {}", text(step.to), text(step.a), text(step.b));
    case LocalStep::Kind::finish:
      return fmt::format("{} = finished {}", text(step.to), text(step.a));
  }
  return {};
}

bool same(Block a, Block b) { return a.space == b.space && a.slice == b.slice; }

}  // namespace

std::string_view name_of(Collective kind) { return kCollectiveNames[static_cast<size_t>(kind)]; }

bool reduces(Collective kind) {
  return kind == Collective::reduce || kind == Collective::allreduce ||
         kind == Collective::reduce_scatter;
}

bool has_parts(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter;
}

std::vector<Slice> balanced_parts(size_t count, int parts) {
  std::vector<Slice> all;
  const size_t lines = (count + kLine - 1) / kLine;
  const auto n = static_cast<size_t>(parts);
  for (size_t p = 0; p < n; ++p) {
    const size_t begin = std::min(count, lines * p / n * kLine);
    all.push_back({begin, std::min(count, lines * (p + 1) / n * kLine) - begin});
  }
  return all;
}

size_t Leaves::parts_of(int p) const {
  if (replicas == 0) return 1;
  return maximal_subtrees(replicas,
                          {first[static_cast<size_t>(p)], first[static_cast<size_t>(p) + 1]})
      .size();
}

bool Leaves::one_a_rank() const {
  if (replicas == 0 || first.size() == 2) return true;
  const auto size = static_cast<unsigned>(first[1] - first[0]);
  for (size_t p = 0; p + 1 < first.size(); ++p)
    if (static_cast<unsigned>(first[p + 1] - first[p]) != size) return false;
  return std::has_single_bit(size);
}

Task balanced_task(Collective kind, int rank, int ranks, size_t count) {
  return {.kind = kind,
          .rank = rank,
          .ranks = ranks,
          .count = count,
          .parts = balanced_parts(count, ranks)};
}

bool needs_all(const Task& task) {
  const auto has_any = [](const Slice& slice) { return slice.count > 0; };
  switch (task.kind) {
    case Collective::barrier:
    case Collective::allreduce: return true;
    case Collective::reduce_scatter: return has_any(task.part());
    case Collective::allgather: return std::ranges::all_of(task.parts, has_any);
    case Collective::all_to_all: return std::ranges::all_of(task.receives, has_any);
    default: return false;
  }
}

std::optional<std::array<size_t, 2>> overlapping(std::span<const Slice> slices) {
  std::vector<size_t> order;  // by begin: where any two slices overlap, so do two neighbours
  for (size_t i = 0; i < slices.size(); ++i)
    if (slices[i].count > 0) order.push_back(i);
  const auto begin_of = [&](size_t i) { return slices[i].begin; };
  if (!std::ranges::is_sorted(order, {}, begin_of)) std::ranges::sort(order, {}, begin_of);
  for (size_t k = 1; k < order.size(); ++k)
    if (slices[order[k - 1]].end() > slices[order[k]].begin)
      return std::array{std::min(order[k - 1], order[k]), std::max(order[k - 1], order[k])};
  return std::nullopt;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
         b.data() < a.data() + a.size();
}

int count_nodes(std::span<const int> node_of) {
  return node_of.empty() ? 1 : std::ranges::max(node_of) + 1;
}

std::string to_string(const Schedule& schedule) {
  std::string out =
      fmt::format("{} by {}, rank {}/{}: {} round(s), staging {}, accumulator {} elements\n",
                  name_of(schedule.kind), schedule.algorithm, schedule.rank, schedule.ranks,
                  schedule.rounds.size(), schedule.staging, schedule.accumulator);
  for (size_t r = 0; r < schedule.rounds.size(); ++r) {
    const Round& round = schedule.rounds[r];
    for (const Message& m : round.receives)
      out += fmt::format("  round {}: receive {} from {}\n", r, text(m.block), m.peer);
    for (const Message& m : round.sends)
      out += fmt::format("  round {}: send {} to {}\n", r, text(m.block), m.peer);
    for (const LocalStep& s : round.steps) out += fmt::format("  round {}: {}\n", r, text(s));
  }
  return out;
}

ScheduleBuilder::ScheduleBuilder(const Task& task, std::string algorithm)
    : wide_(task.wide), mean_(task.mean) {
  schedule_.kind = task.kind;
  schedule_.algorithm = std::move(algorithm);
  schedule_.rank = task.rank;
  schedule_.ranks = task.ranks;
  schedule_.needs_all = needs_all(task);
  schedule_.rounds.emplace_back();
}

Round& ScheduleBuilder::last() { return schedule_.rounds.back(); }

void ScheduleBuilder::round() {
  if (!last().empty()) schedule_.rounds.emplace_back();
}

void ScheduleBuilder::send(int peer, Block block) {
  CHECK(peer != schedule_.rank, "rank {} sends to itself", peer);
  if (block.count() > 0) last().sends.push_back({peer, block});
}

void ScheduleBuilder::receive(int peer, Block block) {
  CHECK(peer != schedule_.rank, "rank {} receives from itself", peer);
  if (block.count() > 0) last().receives.push_back({peer, block});
}

void ScheduleBuilder::copy(Block to, Block from) {
  if (to.count() > 0 && !same(to, from))
    last().steps.push_back({LocalStep::Kind::copy, to, from, {}});
}

void ScheduleBuilder::reduce(Block to, Block a, Block b) {
  CHECK(to.count() == a.count() && a.count() == b.count(), "{} = {} + {}", text(to), text(a),
        text(b));
  if (to.count() > 0) last().steps.push_back({LocalStep::Kind::reduce, to, a, b});
}

void ScheduleBuilder::finish(Block to, Block from) {
  if (to.count() == 0 || (same(to, from) && !mean_)) return;
  last().steps.push_back({mean_ ? LocalStep::Kind::finish : LocalStep::Kind::copy, to, from, {}});
}

Slice ScheduleBuilder::take_staging(size_t count) {
  const Slice slice{schedule_.staging, count};
  schedule_.staging += (count + kLine - 1) / kLine * kLine;
  return slice;
}

Slice ScheduleBuilder::take_accumulator(size_t count) {
  const Slice slice{schedule_.accumulator, count};
  schedule_.accumulator += (count + kLine - 1) / kLine * kLine;
  return slice;
}

void ScheduleBuilder::append(const Schedule& part, const std::vector<int>& ranks,
                             const std::function<Block(Block)>& map) {
  for (const Round& from : part.rounds) {
    round();
    for (const Message& m : from.receives)
      last().receives.push_back({ranks[static_cast<size_t>(m.peer)], map(m.block)});
    for (const Message& m : from.sends)
      last().sends.push_back({ranks[static_cast<size_t>(m.peer)], map(m.block)});
    for (const LocalStep& step : from.steps) {
      const LocalStep mapped{step.kind, map(step.to), map(step.a),
                             step.kind == LocalStep::Kind::reduce ? map(step.b) : Block{}};
      if (mapped.kind != LocalStep::Kind::copy || !same(mapped.to, mapped.a))
        last().steps.push_back(mapped);
    }
  }
}

Schedule ScheduleBuilder::build() {
  if (last().empty()) schedule_.rounds.pop_back();
  return std::move(schedule_);
}

}  // namespace tutti::comm
