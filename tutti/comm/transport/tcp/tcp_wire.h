#pragma once
// The wire of programs without MPI: TCP connections between ranks that find each other in a store.
// Internal to comm/transport/tcp; callers use store_communicator.h.

#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/transport/tcp/switchboard.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// Ends a job that another program has started, such as mpirun. Shared by all wires of a job.
class JobEnd {
 public:
  virtual ~JobEnd() = default;
  /// Notes that rank `by` has given up; it may be this rank. May be called often, by any thread.
  virtual void failed(int by) = 0;
  /// Ends the job as Wire::abort() does, after the alarm was raised.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;
};

/// Thread-safe. No call is collective, except part(); nothing outlives the last of the wires made
/// from one another.
class TcpWire final : public Wire {
 public:
  /// Serves the whole group of `board`. Without `end`, a rank that ends the job ends only itself.
  TcpWire(std::shared_ptr<tcp::Switchboard> board, int rank, int size,
          std::shared_ptr<JobEnd> end = nullptr);
  ~TcpWire() override;

  std::string name() const override { return "TCP"; }
  std::unique_ptr<Messages> messages() override;
  std::unique_ptr<Inbox> inbox(size_t room, int tag) override;
  std::unique_ptr<Channel> channel(const Communicator& communicator,
                                   std::vector<RoundOfMessages> rounds, int number) override;
  std::unique_ptr<Wire> part(const std::vector<int>& members, const std::string& what,
                             double timeout) override;
  std::string thread_refusal() const override { return {}; }
  void raise_alarm() override;
  std::optional<int> alarm() override;
  std::string lost(int rank) override { return board_->lost(group_rank(rank)); }
  std::string left(int rank, bool find_out) override {
    return board_->left(group_rank(rank), find_out);
  }
  [[noreturn]] void abort(int code, const std::string& message) override;

 private:
  TcpWire(std::shared_ptr<tcp::Switchboard> board, std::shared_ptr<JobEnd> end, int rank,
          std::vector<int> members, uint64_t id);
  int group_rank(int rank) const { return members_[static_cast<size_t>(rank)]; }

  std::shared_ptr<tcp::Switchboard> board_;  // shared by all wires made from one another
  std::shared_ptr<JobEnd> end_;              // shared likewise; may be null
  std::vector<int> members_;                 // ranks in the whole group
  uint64_t id_;
  uint64_t parts_ = 0;
};

}  // namespace tutti::comm
