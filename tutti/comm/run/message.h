#pragma once
// Messages of two ranks, matched by sender and tag, in order: what a program sends when no
// collective says who meets whom. Nothing about them is agreed beforehand; only the two take part.
//
// A message is planned once and started as often as wanted. The sender's is complete when the
// receiver has taken it up: so nobody runs ahead of a receiver by more messages than it has
// operations, and nothing piles up (credits of one message an operation). How much arrives is known
// only then, up to the receiver's room.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tutti/comm/run/operation.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// The buffer belongs to the caller and stays in use from start() to completion.
struct MessageSpec {
  std::string name = {};  ///< for error messages; empty: "message"
  int peer = 0;
  int tag = 0;  ///< 0 .. kMostTag
  std::span<std::byte> data = {};
  int priority = 0;
  /// The wait may last as long as it must, as a server's for work does: it fails only when the peer
  /// is found dead or another rank gives up. Otherwise it has the communicator's time-out.
  bool patient = false;

  static constexpr int kMostTag = 16000;  ///< what every MPI has room for
};

/// One end of a message. The way in is Communicator::plan_send and plan_receive.
class MessageOperation final : public Operation {
 public:
  enum class Way { send, receive };
  /// Throws PlanError for a peer, a tag or a length that cannot be.
  MessageOperation(Communicator& communicator, Way way, const MessageSpec& spec);
  ~MessageOperation() override;

  /// Another buffer for later starts. Not while in flight.
  void rebind(std::span<std::byte> data);
  /// Bytes that came, of a receive that is complete.
  size_t arrived() const { return arrived_; }

 private:
  void begin() override;
  bool advance() override;
  Pending describe() const override;

  Way way_;
  MessageSpec spec_;
  std::unique_ptr<Wire::Messages> message_;  // in flight
  size_t arrived_ = 0;
};

}  // namespace tutti::comm
