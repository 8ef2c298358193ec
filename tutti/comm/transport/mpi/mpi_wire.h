#pragma once
// The wire over MPI, with an MPI communicator of its own. Internal to comm/transport/mpi.

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/transport/mpi/alarm.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

class MpiWire final : public Wire {
 public:
  /// Collective. Takes over `comm`. `who` and `timeout` as for timed_call.h; the time-out also
  /// applies to later calls.
  MpiWire(MPI_Comm comm, const std::string& who, double timeout);
  ~MpiWire() override;

  std::string name() const override { return "MPI"; }
  std::unique_ptr<Messages> messages() override;
  std::unique_ptr<Inbox> inbox(size_t room, int tag) override;
  std::unique_ptr<Channel> channel(const Communicator& communicator,
                                   std::vector<RoundOfMessages> rounds, int number) override;
  std::unique_ptr<Wire> part(const std::vector<int>& members, const std::string& what,
                             double timeout) override;
  std::string thread_refusal() const override;
  void raise_alarm() override { alarm_->raise(); }
  std::optional<int> alarm() override { return alarm_->raised(); }
  std::string lost(int /*rank*/) override { return {}; }  // MPI does not report it
  std::string left(int /*rank*/, bool /*find_out*/) override { return {}; }
  [[noreturn]] void abort(int code, const std::string& message) override;

 private:
  MpiWire(MPI_Comm comm, std::shared_ptr<Alarm> alarm, double timeout);
  void check_tag(int tag) const;

  MPI_Comm comm_;                 // this wire's own
  std::shared_ptr<Alarm> alarm_;  // shared by all wires split from one
  double timeout_;
};

}  // namespace tutti::comm
