#pragma once
// Transfer: data of one request between two ranks, in pieces, so that more urgent operations pass.
// Internal to comm/remote.

#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "tutti/comm/run/pacer.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm::remote {

/// Not thread-safe. The receiver makes its own before, or as soon as, the sender does. Destroyed
/// under way it leaves the rest of its messages to nobody.
class Transfer {
 public:
  enum class Way { send, receive };
  /// `messages` makes those of one piece.
  struct Route {
    std::function<std::unique_ptr<Wire::Messages>()> messages;
    int peer = 0;
    int tag = 0;
  };
  /// `data` and `pacer` outlive it; a sender hands over pieces as the pacer lets it.
  Transfer(Way way, std::span<std::byte> data, Route route, Pacer& pacer, int priority);
  ~Transfer() { pacer_.leave(flow_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// True when all has left, or has come. Never blocks.
  bool advance();

  size_t done() const { return done_; }  ///< bytes that have left, or have come

  static constexpr size_t kPiece = size_t{1} << 20;  ///< bytes

 private:
  bool may_post();
  void post();
  Way way_;
  std::span<std::byte> data_;
  Route route_;
  Pacer& pacer_;
  Pacer::Flow flow_;
  std::deque<std::unique_ptr<Wire::Messages>> under_way_;  // a piece each, in their order
  size_t posted_ = 0, done_ = 0;                           // bytes
};

}  // namespace tutti::comm::remote
