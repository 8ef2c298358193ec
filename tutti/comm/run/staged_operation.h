#pragma once
// StagedOperation: collectives one after another, with this rank's own work before each and after
// the last.

#include <memory>
#include <vector>

#include "tutti/comm/run/collective.h"
#include "tutti/comm/run/operation.h"

namespace tutti::comm {

/// The work before the first collective is done in start(), everything else by whoever moves the
/// operation forward (comm/run/progress.h). The collectives run inside this operation: they have
/// its priority, and are never started by themselves.
class StagedOperation : public Operation {
 protected:
  using Operation::Operation;

  /// A collective and its members' ranks in this operation's communicator; empty: all of them.
  struct Exchange {
    std::unique_ptr<CollectiveOperation> operation;
    std::vector<int> members = {};
  };
  /// The work before collective number `stage`, which it returns; null when the result is there.
  /// Must not block. By any thread, one at a time; stage 0 by the owner.
  virtual Exchange* next(int stage) = 0;
  /// What a report calls it.
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
