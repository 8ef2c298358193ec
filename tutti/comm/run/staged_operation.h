#pragma once
// StagedOperation: several collectives one after another, with this rank's own work before each and
// after the last.

#include <memory>
#include <vector>

#include "tutti/comm/run/collective.h"
#include "tutti/comm/run/operation.h"

namespace tutti::comm {

/// The work before the first collective is done in start(), everything else by the thread that
/// moves the operation forward (comm/run/progress.h). The collectives run inside this operation:
/// they have its priority, and are never started by themselves.
class StagedOperation : public Operation {
 protected:
  using Operation::Operation;

  /// A collective, and the ranks of its members in this operation's communicator; empty: all ranks.
  struct Exchange {
    std::unique_ptr<CollectiveOperation> operation;
    std::vector<int> members = {};
  };
  /// Does the work before collective number `stage` and returns the collective; null when the
  /// result is there. Must not block. Called by any thread, one at a time; stage 0 by the owner.
  virtual Exchange* next(int stage) = 0;
  /// Returns the name in reports.
  virtual std::string description() const { return name(); }

 private:
  void begin() final;
  bool advance() final;
  Pending describe() const final;
  void begin_stage();

  int stage_ = 0;
  Exchange* current_ = nullptr;
};

}  // namespace tutti::comm
