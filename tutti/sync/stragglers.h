#pragma once
// Stragglers: finds the rank for which the others wait in training (comm/check/arrival.h), and
// writes it into the run record and, if it persists, into the log.

#include "tutti/comm/check/arrival.h"
#include "tutti/trace/record.h"

namespace tutti::sync {

/// Distinguishes a straggler from chance, which makes some rank the last in most of a few steps,
/// and from start-up or another program, which delay one for a second.
class StragglerWatch {
 public:
  static constexpr int kReports = 3;     ///< consecutive reports that name the same rank
  static constexpr int64_t kSteps = 50;  ///< steps that they cover together
  /// Returns the rank that has stayed the straggler, when that is first found; else -1.
  int look(const comm::ArrivalSummary& summary);

 private:
  int suspect_ = -1;  // the straggler of the last report
  int reports_ = 0;   // in a row
  int64_t steps_ = 0;
  int named_ = -1;
};

class Stragglers {
 public:
  /// Both arguments must outlive this object.
  Stragglers(comm::Communicator& communicator, comm::ArrivalRecord& arrivals)
      : communicator_(communicator), arrivals_(arrivals) {}

  /// Collective. `record` is given on the rank that writes it and null elsewhere. Does nothing with
  /// a single rank. The log names a rank once, and only if it is late over several reports in a
  /// row.
  void report(int64_t step, trace::RunRecord* record);

 private:
  comm::Communicator& communicator_;
  comm::ArrivalRecord& arrivals_;
  StragglerWatch watch_;
};

}  // namespace tutti::sync
