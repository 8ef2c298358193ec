#include "tutti/comm/check/arrival.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr int kOffsetRounds = 8;
constexpr double kNever = std::numeric_limits<double>::max();

double seconds(ArrivalRecord::Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}
double now() { return seconds(ArrivalRecord::Clock::now()); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The combined results of ranks: the latest ranks, and sums over all.
struct Latest {
  std::array<Lateness, ArrivalSummary::kLatest> ranks{};
  size_t count = 0;
  double waited = 0, waited_for_late = 0;
};

void merge(Latest& mine, const Latest& theirs) {
  std::vector<Lateness> both(mine.ranks.begin(), mine.ranks.begin() + mine.count);
  both.insert(both.end(), theirs.ranks.begin(), theirs.ranks.begin() + theirs.count);
  std::ranges::stable_sort(both, [](const Lateness& a, const Lateness& b) {
    return a.last != b.last ? a.last > b.last : a.median > b.median;
  });
  mine.count = std::min(both.size(), mine.ranks.size());
  std::copy_n(both.begin(), mine.count, mine.ranks.begin());
  mine.waited += theirs.waited;
  mine.waited_for_late += theirs.waited_for_late;
}

}  // namespace

const Lateness* ArrivalSummary::straggler() const {
  if (ranks.empty() || steps < 4) return nullptr;
  const Lateness& first = ranks.front();
  return 3 * first.last >= 2 * steps && first.median >= 0.05 * step_seconds &&
                 first.median >= 2 * clock_error
             ? &first
             : nullptr;
}

std::string to_string(const Lateness& late, const ArrivalSummary& summary,
                      const Communicator& communicator) {
  return fmt::format(
      "{} arrived last in {} of {} steps, by {:.1f} ms in the median ({:.0f} % of a step; clocks "
      "agree to {:.2g} ms)",
      communicator.rank_name(late.rank), late.last, summary.steps, late.median * 1e3,
      summary.step_seconds > 0 ? late.median / summary.step_seconds * 100 : 0,
      summary.clock_error * 1e3);
}

ArrivalRecord::ArrivalRecord(Communicator& communicator, int operations, int steps)
    : communicator_(communicator), operations_(static_cast<size_t>(operations)),
      capacity_(static_cast<size_t>(steps)), noted_(operations_, 0) {
  CHECK(operations >= 1 && steps >= 1, "{} operations, {} steps", operations, steps);
  if (communicator.size() == 1) return;
  for (auto* values : {&arrivals_, &earliest_, &latest_, &wait_begins_, &wait_ends_})
    values->assign(capacity_ * operations_, 0);
  lateness_.assign(capacity_, 0);
  const auto plan = [&](const char* name, ReduceOp op, std::vector<double>& values) {
    return communicator.plan({.name = name,
                              .kind = Collective::allreduce,
                              .element = Element::f64,
                              .op = op,
                              .count = values.size(),
                              .output = values.data()});
  };
  find_earliest_ = plan("arrivals", ReduceOp::min, earliest_);
  find_latest_ = plan("last arrivals", ReduceOp::max, latest_);
  find_lateness_ = plan("lateness", ReduceOp::max, lateness_);
}

void ArrivalRecord::note(int operation) {
  const auto i = static_cast<size_t>(operation);
  CHECK(i < operations_, "operation {} of {}", operation, operations_);
  const size_t step = noted_[i]++;
  if (step >= capacity_ || arrivals_.empty()) return;
  arrivals_[step * operations_ + i] = now();
  wait_begins_[step * operations_ + i] = wait_ends_[step * operations_ + i] = 0;
}

void ArrivalRecord::waited(int operation, Clock::time_point begin) {
  const auto i = static_cast<size_t>(operation);
  CHECK(i < operations_, "operation {} of {}", operation, operations_);
  const size_t steps = noted_[i];
  if (steps == 0 || steps > capacity_ || arrivals_.empty()) return;
  wait_begins_[(steps - 1) * operations_ + i] = seconds(begin);
  wait_ends_[(steps - 1) * operations_ + i] = now();
}

int64_t ArrivalRecord::complete_steps() {
  const auto mine = static_cast<int64_t>(std::min(capacity_, std::ranges::min(noted_)));
  return communicator_.least(mine);
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
  // Ranks on rank 0's node read the same clock.
  const bool same_clock = communicator_.same_node(0);
  offset_ = same_clock ? 0 : (least + most) / 2;
  error_ = same_clock ? 0 : (most - least) / 2;
}

/// Compares the first `steps` steps on rank 0's clock: finds the earliest and the latest arrivals,
/// and each step's largest lateness.
void ArrivalRecord::compare_arrivals(size_t steps) {
  const auto compared = static_cast<std::ptrdiff_t>(steps * operations_);
  std::transform(arrivals_.begin(), arrivals_.begin() + compared, arrivals_.begin(),
                 [this](double time) { return time + offset_; });
  earliest_ = latest_ = arrivals_;
  find_earliest_->run();
  find_latest_->run();
  std::ranges::fill(lateness_, 0.0);
  for (size_t i = 0; i < steps * operations_; ++i)
    lateness_[i / operations_] = std::max(lateness_[i / operations_], arrivals_[i] - earliest_[i]);
}

/// Returns this rank's lateness and waits. Puts each step's largest of all ranks into lateness_.
Lateness ArrivalRecord::compare_waits(size_t steps) {
  Lateness mine{.rank = communicator_.rank()};
  if (steps == 0) return mine;
  const std::vector<double> late(lateness_.begin(),
                                 lateness_.begin() + static_cast<std::ptrdiff_t>(steps));
  find_lateness_->run();
  mine.median = median(late);
  mine.worst = std::ranges::max(late);
  for (size_t s = 0; s < steps; ++s)
    if (late[s] > 0 && late[s] == lateness_[s]) ++mine.last;
  for (size_t i = 0; i < steps * operations_; ++i) {
    const double begin = wait_begins_[i] + offset_, end = wait_ends_[i] + offset_;
    mine.waited += (end - begin) / static_cast<double>(steps);
    mine.waited_for_late +=
        std::clamp(latest_[i] - begin, 0.0, end - begin) / static_cast<double>(steps);
  }
  return mine;
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
  compare_arrivals(steps);
  const Lateness mine = compare_waits(steps);
  const Latest all =
      communicator_.combine_value(Latest{{mine}, 1, mine.waited, mine.waited_for_late}, merge);
  summary.ranks.assign(all.ranks.begin(), all.ranks.begin() + all.count);
  summary.waited = all.waited / communicator_.size();
  summary.waited_for_late = all.waited_for_late / communicator_.size();
  summary.clock_error = communicator_.most(error_);
  if (steps > 1)
    summary.step_seconds =
        (arrivals_[(steps - 1) * operations_] - arrivals_[0]) / static_cast<double>(steps - 1);
  noted_.assign(operations_, 0);
  return summary;
}

}  // namespace tutti::comm
