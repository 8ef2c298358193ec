#pragma once
// Stragglers: which rank the others wait for in training: comm/arrival.h, put into the run record
// and, once per rank, into the log.

#include "tutti/comm/arrival.h"
#include "tutti/trace/record.h"

namespace tutti {

class Stragglers {
 public:
  /// Both must outlive it.
  Stragglers(comm::Communicator& communicator, comm::ArrivalRecord& arrivals)
      : communicator_(communicator), arrivals_(arrivals) {}

  /// Collective. `record` on the rank that writes it, null elsewhere. Does nothing with a single
  /// rank.
  void report(int64_t step, RunRecord* record);

 private:
  comm::Communicator& communicator_;
  comm::ArrivalRecord& arrivals_;
  int named_ = -1;  // the rank that the log has named last
};

}  // namespace tutti
