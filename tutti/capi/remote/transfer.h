#pragma once
// Transfer: the data of one request between two ranks, in pieces, so that more urgent operations
// pass. Internal to capi/remote.

#include <cstddef>
#include <deque>
#include <memory>
#include <span>

#include "tutti/comm/run/pacer.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::capi::remote {

/// Not thread-safe. The receiver makes its own before, or as soon as, the sender does. If it is
/// destroyed under way, the rest of its messages has no receiver.
class Transfer {
 public:
  enum class Way { send, receive };
  /// `messages` makes the messages of one piece.
  struct Route {
    std::function<std::unique_ptr<comm::Wire::Messages>()> messages;
    int peer = 0;
    int tag = 0;
  };
  /// `data` and `pacer` outlive this; a sender hands over pieces as the pacer allows.
  Transfer(Way way, std::span<std::byte> data, Route route, comm::Pacer& pacer, int priority);
  ~Transfer() { pacer_.leave(flow_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Returns whether all data have left, or have come. Never blocks.
  bool advance();

  size_t done() const { return done_; }  ///< bytes that have left, or have come

  static constexpr size_t kPiece = size_t{1} << 20;  ///< bytes

 private:
  bool may_post();
  void post();
  Way way_;
  std::span<std::byte> data_;
  Route route_;
  comm::Pacer& pacer_;
  comm::Pacer::Flow flow_;
  std::deque<std::unique_ptr<comm::Wire::Messages>> under_way_;  // a piece each, in their order
  size_t posted_ = 0, done_ = 0;                                 // bytes
};

}  // namespace tutti::capi::remote
