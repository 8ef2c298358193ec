#include "tutti/sync/stragglers.h"

#include "tutti/base/log.h"

namespace tutti::sync {

int StragglerWatch::look(const comm::ArrivalSummary& summary) {
  const comm::Lateness* straggler = summary.straggler();
  const int rank = straggler ? straggler->rank : -1;
  if (rank != suspect_) reports_ = 0, steps_ = 0;
  suspect_ = rank;
  ++reports_, steps_ += summary.steps;
  if (rank < 0 || rank == named_ || reports_ < kReports || steps_ < kSteps) return -1;
  return named_ = rank;
}

void Stragglers::report(int64_t step, trace::RunRecord* record) {
  if (communicator_.size() == 1) return;
  const comm::ArrivalSummary summary = arrivals_.collect();
  if (record == nullptr || summary.steps == 0) return;
  trace::ArrivalsRecord line{.step = step,
                             .steps = summary.steps,
                             .clock_error_ms = summary.clock_error * 1e3,
                             .waited_ms = summary.waited * 1e3,
                             .waited_for_late_ms = summary.waited_for_late * 1e3};
  for (const comm::Lateness& late : summary.ranks) {
    line.ranks.push_back(communicator_.job_rank(late.rank));
    line.last.push_back(late.last);
    line.late_ms.push_back(late.median * 1e3);
  }
  if (const comm::Lateness* straggler = summary.straggler())
    line.straggler = communicator_.job_rank(straggler->rank);
  if (watch_.look(summary) >= 0)
    log::warn("{}: the others wait for it",
              to_string(*summary.straggler(), summary, communicator_));
  record->append(line);
}

}  // namespace tutti::sync
