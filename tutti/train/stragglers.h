#pragma once
// Stragglers: which rank the others wait for in training: comm/arrival.h, put into the run record and, once per rank, into the log.

#include "tutti/comm/arrival.h"
#include "tutti/trace/record.h"

namespace tutti {

class Stragglers {
 public:
  /// Collective. The communicator must outlive it. Of the steps between two reports at most kSteps are kept.
  Stragglers(comm::Communicator& communicator, int buckets, int64_t log_every);

  /// This rank starts the exchange of this bucket now.
  void note(int bucket) { arrivals_.note(bucket); }
  /// Collective. `record` on the rank that writes it, null elsewhere. Does nothing with a single rank.
  void report(int64_t step, RunRecord* record);

 private:
  static constexpr int64_t kSteps = 256;
  comm::Communicator& communicator_;
  comm::ArrivalRecord arrivals_;
  int named_ = -1;  // the rank that the log has named last
};

}  // namespace tutti
