#pragma once
// The wire of programs without MPI: TCP connections between ranks that find each other in a store.
// Internal to comm/transport/tcp; the way in is store_communicator.h.

#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/transport/tcp/switchboard.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// How a job ends that somebody else has started, as mpirun. Of all wires of a job.
class JobEnd {
 public:
  virtual ~JobEnd() = default;
  /// This rank has given up, or heard that rank `by` has. May be called often, by any thread.
  virtual void failed(int by) = 0;
  /// As Wire::abort(), after the alarm was raised.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;
};

/// Thread-safe. No call is collective, but part(); nothing outlives the last of the wires that were
/// made from one.
class TcpWire final : public Wire {
 public:
  /// The whole group of `board`. Without `end`, a rank that ends the job ends itself alone.
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

  std::shared_ptr<tcp::Switchboard> board_;  // of all wires parted from one; ends with the last
  std::shared_ptr<JobEnd> end_;              // of the same; may be null
  std::vector<int> members_;                 // in the whole group
  uint64_t id_;
  uint64_t parts_ = 0;
};

}  // namespace tutti::comm
