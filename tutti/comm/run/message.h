#pragma once
// Messages between two ranks, matched by sender and tag, in order: for programs whose communication
// no collective describes. Nothing is agreed beforehand; only the two ranks take part.
//
// A message is planned once and started as often as wanted. The send is complete when the receiver
// has taken up the message: so no sender runs ahead of a receiver by more messages than it has
// operations, and nothing piles up (credits of one message an operation). The number of bytes that
// arrive, up to the size of the receiver's buffer, is known only then.

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
  /// The wait has no time-out, as for a server that waits for work: it fails only when the peer is
  /// found dead or another rank gives up. Otherwise the communicator's time-out applies.
  bool patient = false;

  static constexpr int kMostTag = 16000;  ///< a tag that every MPI supports
};

/// One end of a message. Callers use Communicator::plan_send and plan_receive.
class MessageOperation final : public Operation {
 public:
  enum class Way { send, receive };
  /// Throws PlanError for an impossible peer, tag or length.
  MessageOperation(Communicator& communicator, Way way, const MessageSpec& spec);
  ~MessageOperation() override;

  /// Sets another buffer for later starts. Not while in flight.
  void rebind(std::span<std::byte> data);
  /// Returns the number of bytes that came with a complete receive.
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
