#pragma once
// PartExchange: the exchanges of a plan that are messages between the ranks which share samples or
// statistics, or the layers of a replica (ExchangeParts).

#include <memory>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/run/executor.h"
#include "tutti/split/grid.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class PartExchange final : public plan::Exchanges {
 public:
  /// Plan, executor and communicator must outlive this object; the executor's memory must not move.
  PartExchange(comm::Communicator& communicator, const split::PartGrid& grid,
               const plan::Plan& plan, const plan::Executor& executor);

  void start(int exchange) override;
  bool done(int exchange) override;
  /// Throws CommError after the time-out.
  plan::ExchangeOutput finish(int exchange) override;
  std::optional<std::vector<plan::OwnCopy>> own_copies(int exchange) const override;
  void poll() override { communicator_.progress(); }
  /// Returns the seconds blocked in finish(), since the construction.
  double exposed_seconds() const { return exposed_; }
  /// Returns the bytes that this rank sends per step.
  size_t bytes() const { return bytes_; }

 private:
  struct Bound {
    comm::MessageOperation* message;
    plan::Place place;
    size_t bytes;
  };
  struct Exchange {
    std::vector<std::unique_ptr<comm::MessageOperation>> messages;
    std::vector<Bound> bound;            // those that send from memory bound by the caller
    std::vector<plan::OwnCopy> to_self;  // copies within this rank
  };
  comm::Communicator& communicator_;
  const plan::Executor& executor_;
  void plan_exchanges(const split::PartGrid& grid, const plan::Plan& plan, int arena);
  Exchange& exchange_of(int exchange) {
    return exchanges_[static_cast<size_t>(executor_.arena())][static_cast<size_t>(exchange)];
  }
  std::vector<std::vector<Exchange>> exchanges_;  // by arena, then by number in the plan
  double exposed_ = 0;
  size_t bytes_ = 0;
};

}  // namespace tutti::train
