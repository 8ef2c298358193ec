#include "tutti/comm/arrival.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr int kOffsetRounds = 8;
constexpr double kNever = std::numeric_limits<double>::max();

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void run(CollectiveOperation& operation) {
  operation.start();
  operation.wait();
}

}  // namespace

const Lateness* ArrivalSummary::straggler() const {
  if (ranks.empty() || steps < 4) return nullptr;
  const Lateness& first = ranks.front();
  return 3 * first.last >= 2 * steps && first.median >= 0.05 * step_seconds && first.median >= 2 * clock_error ? &first : nullptr;
}

std::string to_string(const Lateness& late, const ArrivalSummary& summary, const Communicator& communicator) {
  return fmt::format("{} arrived last in {} of {} steps, by {:.1f} ms in the median ({:.0f} % of a step; clocks agree to {:.2g} ms)", communicator.rank_name(late.rank),
                     late.last, summary.steps, late.median * 1e3, summary.step_seconds > 0 ? late.median / summary.step_seconds * 100 : 0, summary.clock_error * 1e3);
}

ArrivalRecord::ArrivalRecord(Communicator& communicator, int operations, int steps)
    : communicator_(communicator), operations_(static_cast<size_t>(operations)), capacity_(static_cast<size_t>(steps)), noted_(operations_, 0) {
  CHECK(operations >= 1 && steps >= 1, "{} operations, {} steps", operations, steps);
  if (communicator.size() == 1) return;
  for (auto* values : {&arrivals_, &earliest_}) values->assign(capacity_ * operations_, kNever);
  latest_.assign(capacity_, 0);
  find_earliest_ = communicator.plan({.name = "arrivals", .kind = Collective::allreduce, .element = Element::f64, .op = ReduceOp::min, .count = earliest_.size(),
                                      .output = earliest_.data()});
  find_latest_ = communicator.plan({.name = "lateness", .kind = Collective::allreduce, .element = Element::f64, .op = ReduceOp::max, .count = latest_.size(),
                                    .output = latest_.data()});
}

void ArrivalRecord::note(int operation) {
  const auto i = static_cast<size_t>(operation);
  CHECK(i < operations_, "operation {} of {}", operation, operations_);
  const size_t step = noted_[i]++;
  if (step < capacity_ && !arrivals_.empty()) arrivals_[step * operations_ + i] = now();
}

int64_t ArrivalRecord::complete_steps() {
  const auto mine = static_cast<int64_t>(std::min(capacity_, std::ranges::min(noted_)));
  return std::ranges::min(communicator_.allgather_value(mine));
}

void ArrivalRecord::find_offset() {
  if (communicator_.one_node()) return;
  double least = -kNever, most = kNever;
  for (int round = 0; round < kOffsetRounds; ++round) {
    const double before = now();
    communicator_.barrier();
    double at_root = now();
    communicator_.broadcast_value(at_root, 0);
    const double after = now();
    least = std::max(least, at_root - after);
    most = std::min(most, at_root - before);
  }
  // Ranks of rank 0's node read its very clock.
  const bool same_clock = communicator_.same_node(0);
  offset_ = same_clock ? 0 : (least + most) / 2;
  error_ = same_clock ? 0 : (most - least) / 2;
}

ArrivalSummary ArrivalRecord::collect() {
  ArrivalSummary summary;
  if (communicator_.size() == 1) {
    noted_.assign(operations_, 0);
    return summary;
  }
  summary.steps = complete_steps();
  const auto steps = static_cast<size_t>(summary.steps);
  find_offset();
  std::ranges::fill(earliest_, kNever);
  for (size_t i = 0; i < steps * operations_; ++i) earliest_[i] = arrivals_[i] += offset_;
  run(*find_earliest_);

  std::vector<double> late(steps, 0.0);
  for (size_t i = 0; i < steps * operations_; ++i) late[i / operations_] = std::max(late[i / operations_], arrivals_[i] - earliest_[i]);
  std::ranges::fill(latest_, 0.0);
  std::ranges::copy(late, latest_.begin());
  run(*find_latest_);

  Lateness mine{.rank = communicator_.rank(), .last = 0, .median = median(late), .worst = steps == 0 ? 0 : std::ranges::max(late)};
  for (size_t s = 0; s < steps; ++s)
    if (late[s] > 0 && late[s] == latest_[s]) ++mine.last;
  summary.ranks = communicator_.allgather_value(mine);
  std::ranges::stable_sort(summary.ranks, [](const Lateness& a, const Lateness& b) { return a.last != b.last ? a.last > b.last : a.median > b.median; });
  for (const double error : communicator_.allgather_value(error_)) summary.clock_error = std::max(summary.clock_error, error);
  if (steps > 1) summary.step_seconds = (arrivals_[(steps - 1) * operations_] - arrivals_[0]) / static_cast<double>(steps - 1);
  noted_.assign(operations_, 0);
  return summary;
}

}  // namespace tutti::comm
