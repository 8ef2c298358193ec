#include "tutti/train/stragglers.h"

#include <algorithm>

#include "tutti/base/log.h"

namespace tutti {

void Stragglers::report(int64_t step, RunRecord* record) {
  if (communicator_.size() == 1) return;
  const comm::ArrivalSummary summary = arrivals_.collect();
  if (record == nullptr || summary.steps == 0) return;
  constexpr size_t kRanks = 8;
  ArrivalsRecord line{.step = step,
                      .steps = summary.steps,
                      .clock_error_ms = summary.clock_error * 1e3,
                      .waited_ms = summary.waited() * 1e3,
                      .waited_for_late_ms = summary.waited_for_late() * 1e3};
  for (size_t i = 0; i < std::min(kRanks, summary.ranks.size()); ++i) {
    const comm::Lateness& late = summary.ranks[i];
    line.ranks.push_back(late.rank);
    line.last.push_back(late.last);
    line.late_ms.push_back(late.median * 1e3);
  }
  if (const comm::Lateness* straggler = summary.straggler()) {
    line.straggler = straggler->rank;
    if (straggler->rank != named_)
      log::warn("{}: the others wait for it", to_string(*straggler, summary, communicator_));
    named_ = straggler->rank;
  }
  record->append(line);
}

}  // namespace tutti
