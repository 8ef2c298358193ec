#pragma once
// PartExchange: the exchanges with outputs that a plan has (Plan::exchanges), as messages between
// the ranks that share samples or statistics.

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/parallel/split/grid.h"
#include "tutti/plan/executor.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class PartExchange {
 public:
  /// Plan, executor and communicator must outlive it; the executor's memory stays where it is.
  PartExchange(comm::Communicator& communicator, const PartGrid& grid, const Plan& plan,
               const Executor& executor);

  bool empty() const { return exchanges_.empty(); }
  /// The inputs of this exchange are complete: sends them. Never blocks.
  void start(int exchange);
  /// Returns when its outputs are there and its inputs free. Throws CommError after the time-out.
  void finish(int exchange);
  /// Seconds blocked in finish(), since the construction.
  double exposed_seconds() const { return exposed_; }
  /// Bytes that this rank sends in a step.
  size_t bytes() const { return bytes_; }

 private:
  struct Bound {
    comm::MessageOperation* message;
    Place place;
    size_t bytes;
  };
  struct Exchange {
    std::vector<std::unique_ptr<comm::MessageOperation>> messages;
    std::vector<Bound> bound;  // those that send from where the caller has bound memory
  };
  const Executor& executor_;
  std::vector<Exchange> exchanges_;
  double exposed_ = 0;
  size_t bytes_ = 0;
};

}  // namespace tutti
