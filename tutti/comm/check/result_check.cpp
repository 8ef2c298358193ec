#include "tutti/comm/check/result_check.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

// The rounding error of adding up a block in double.
constexpr double kDoubleSums =
    static_cast<double>(ResultCheck::kBlock) * std::numeric_limits<double>::epsilon();

bool has_result(const Task& task) {
  return task.kind != Collective::reduce || task.rank == task.root;
}

Slice result_of(const Task& task) {
  if (!has_result(task)) return {};
  return task.kind == Collective::reduce_scatter ? task.part() : Slice{0, task.count};
}

// Makes a collective of the check's own, which is never checked by another one.
std::unique_ptr<ScheduleRun> run_of(Communicator& communicator, Collective kind, size_t count,
                                    const Operands& operands) {
  Task task = balanced_task(kind, communicator.rank(), communicator.size(), count);
  if (kind == Collective::allgather)
    for (size_t p = 0; p < task.parts.size(); ++p)
      task.parts[p] = {p * (count / task.parts.size()), count / task.parts.size()};
  return std::make_unique<ScheduleRun>(communicator,
                                       make_schedule(algorithm_named("pairwise"), task), operands);
}

}  // namespace

ResultCheck::ResultCheck(Communicator& communicator, const Task& task, const Schedule& schedule,
                         const Operands& operands)
    : communicator_(communicator), task_(task), operands_(operands), result_(result_of(task)) {
  const bool floats = operands.element == Element::f32 || operands.element == Element::f64;
  against_parts_ = reduces(task.kind) && floats &&
                   (operands.op == ReduceOp::sum || operands.op == ReduceOp::mean) &&
                   task.count > 0;
  same_everywhere_ = task.kind == Collective::allreduce || task.kind == Collective::broadcast ||
                     task.kind == Collective::allgather;
  verdicts_.resize(static_cast<size_t>(task.ranks));
  if (against_parts_) {
    find_blocks(schedule);
    totals_.resize(blocks_.size() * 2);
    auto* const totals = reinterpret_cast<std::byte*>(totals_.data());
    add_totals_ = run_of(communicator, Collective::allreduce, totals_.size(),
                         {.input = totals, .output = totals, .element = Element::f64});
  }
  auto* const all = reinterpret_cast<std::byte*>(verdicts_.data());
  auto* const mine = reinterpret_cast<std::byte*>(&verdicts_[static_cast<size_t>(task.rank)]);
  gather_verdicts_ = run_of(communicator, Collective::allgather, verdicts_.size() * sizeof(Verdict),
                            {.input = mine, .output = all, .element = Element::byte});
}

void ResultCheck::find_blocks(const Schedule& schedule) {
  for (const Slice& part :
       task_.parts.empty() ? balanced_parts(task_.count, task_.ranks) : task_.parts)
    for (size_t begin = part.begin; begin < part.end(); begin += kBlock)
      blocks_.push_back({begin, std::min(kBlock, part.end() - begin)});
  written_.assign(blocks_.size(), false);
  const auto mark = [&](const Block& block, bool here) {
    if (block.space != Space::output) return;
    const Slice at{result_.begin + block.slice.begin, block.count()};
    for (size_t b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].begin < at.end() && at.begin < blocks_[b].end()) written_[b] = here;
  };
  for (const Round& round : schedule.rounds) {
    for (const Message& message : round.receives) mark(message.block, false);
    for (const LocalStep& step : round.steps) mark(step.to, true);
  }
}

// Adds elements to the totals of the blocks in `held`, a slice of the long vector, at `data`.
void ResultCheck::add_up(const std::byte* data, Slice held, std::vector<double>& totals) const {
  const auto add = [&](const auto* x) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].begin < held.begin || blocks_[b].end() > held.end()) continue;
      const auto* const block = x + (blocks_[b].begin - held.begin);
      double sum = 0, size = 0;
      for (size_t i = 0; i < blocks_[b].count; ++i) {
        sum += static_cast<double>(block[i]);
        size += std::abs(static_cast<double>(block[i]));
      }
      totals[2 * b] += sum;
      totals[2 * b + 1] += size;
    }
  };
  if (operands_.element == Element::f32) return add(reinterpret_cast<const float*>(data));
  add(reinterpret_cast<const double*>(data));
}

void ResultCheck::begin() {
  judged_ = false;
  if (!against_parts_) return;
  std::ranges::fill(totals_, 0.0);
  for (size_t part = 0; part < task_.leaves.parts_of(task_.rank); ++part)
    add_up(operands_.input + part * task_.leaves.stride * size_of(operands_.element),
           {0, task_.count}, totals_);
  add_totals_->begin();
}

void ResultCheck::look_at_sums(Verdict& mine) const {
  if (!against_parts_ || result_.count == 0) return;
  std::vector<double> found(totals_.size(), 0.0);
  add_up(operands_.output, result_, found);
  const double divisor = operands_.op == ReduceOp::mean ? operands_.divisor : 1;
  const double eps = operands_.element == Element::f32 ? std::numeric_limits<float>::epsilon()
                                                       : std::numeric_limits<double>::epsilon();
  const int addends = std::max(task_.ranks, task_.leaves.replicas);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].begin < result_.begin || blocks_[b].end() > result_.end()) continue;
    const double size = totals_[2 * b + 1] / divisor;
    const double allowed = (eps * (addends + 8) + kDoubleSums) * size;
    const double off = std::abs(found[2 * b] - totals_[2 * b] / divisor);
    if (!std::isfinite(size) || off <= allowed)
      continue;  // infinite or NaN inputs are not the sum's fault
    mine.wrong_block = static_cast<int64_t>(b);
    mine.added_here = written_[b] ? 1 : 0;
    mine.off = off, mine.allowed = allowed;
    return;
  }
}

bool ResultCheck::advance() {
  if (!judged_) {
    if (against_parts_ && !add_totals_->advance()) return false;
    Verdict mine;
    look_at_sums(mine);
    if (same_everywhere_ && task_.count > 0)
      mine.checksum = XXH3_64bits(operands_.output, task_.count * size_of(operands_.element));
    verdicts_[static_cast<size_t>(task_.rank)] = mine;
    gather_verdicts_->begin();
    judged_ = true;
  }
  if (!gather_verdicts_->advance()) return false;
  judge();
  return true;
}

std::string ResultCheck::blame(const std::vector<int>& ranks) const {
  std::string text;
  for (const int p : ranks) text += (text.empty() ? "" : ", ") + communicator_.rank_name(p);
  return text;
}

void ResultCheck::judge() const {
  std::vector<int> wrong, added_there, minority;
  std::map<uint64_t, int> votes;
  for (int p = 0; p < task_.ranks; ++p) {
    const Verdict& verdict = verdicts_[static_cast<size_t>(p)];
    if (verdict.wrong_block >= 0) wrong.push_back(p);
    if (verdict.wrong_block >= 0 && verdict.added_here != 0) added_there.push_back(p);
    ++votes[verdict.checksum];
  }
  if (!wrong.empty()) {
    const Verdict& first =
        verdicts_[static_cast<size_t>(added_there.empty() ? wrong.front() : added_there.front())];
    const Slice& block = blocks_[static_cast<size_t>(first.wrong_block)];
    throw CommError(
        fmt::format("elements [{}, {}) of the result are not the sum of what the ranks gave: off "
                    "by {:g}, rounding allows {:g}; {} {}: look for a faulty processor "
                    "or memory there",
                    block.begin, block.end(), first.off, first.allowed,
                    added_there.empty() ? "seen on" : "added last on",
                    blame(added_there.empty() ? wrong : added_there)));
  }
  if (!same_everywhere_ || votes.size() < 2) return;
  const auto majority =
      std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  for (int p = 0; p < task_.ranks; ++p)
    if (verdicts_[static_cast<size_t>(p)].checksum != majority->first) minority.push_back(p);
  if (2 * majority->second <= task_.ranks)
    throw CommError(
        fmt::format("the ranks hold {} different results, none of them on most ranks: look for a "
                    "faulty processor or memory",
                    votes.size()));
  throw CommError(fmt::format(
      "another result than on most ranks on {}: look for a faulty processor or memory there",
      blame(minority)));
}

std::vector<int> ResultCheck::missing() const {
  if (judged_) return gather_verdicts_->missing();
  return against_parts_ ? add_totals_->missing() : std::vector<int>{};
}

}  // namespace tutti::comm
