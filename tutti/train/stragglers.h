#pragma once
// Stragglers: which rank the others wait for in training: comm/arrival.h, put into the run record
// and, where it goes on, into the log.

#include "tutti/comm/arrival.h"
#include "tutti/trace/record.h"

namespace tutti {

class Stragglers {
 public:
  /// Both must outlive it.
  Stragglers(comm::Communicator& communicator, comm::ArrivalRecord& arrivals)
      : communicator_(communicator), arrivals_(arrivals) {}

  /// Collective. `record` on the rank that writes it, null elsewhere. Does nothing with a single
  /// rank. The log names a rank once, and only if it is late over several reports in a row.
  void report(int64_t step, RunRecord* record);

 private:
  comm::Communicator& communicator_;
  comm::ArrivalRecord& arrivals_;
  bool persists(const comm::ArrivalSummary& summary);

  // Chance alone makes some rank the last in most of a few steps, and start-up or another program
  // makes one late for a second. A rank is named when it stays the straggler over these many steps
  // and reports.
  static constexpr int64_t kSteps = 50;
  static constexpr int kReports = 3;
  int suspect_ = -1;  // the straggler of the last report
  int reports_ = 0;   // in a row
  int64_t steps_ = 0;
  int named_ = -1;  // the rank that the log has named last
};

}  // namespace tutti
