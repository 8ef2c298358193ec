#pragma once
// A connection at its receiver: takes frames in, puts messages where they belong, and answers.
// Internal to comm/transport/tcp.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/matching.h"
#include "tutti/comm/transport/tcp/readiness.h"

namespace tutti::comm::tcp {

class Inbound {
 public:
  /// The sender has proved itself. `ready` and `matching` outlive it.
  Inbound(int peer, Socket socket, const Readiness& ready, Matching& matching);

  int peer() const { return peer_; }
  /// Takes what has come, up to some megabytes. Returns the rank of an alarm that was in it.
  std::optional<int> take();
  /// Sends answers that are left.
  void answer();
  /// A kept message, or an announced one, has found its receive.
  void match(std::unique_ptr<Arrived> message, Incoming& receive);
  /// Nobody will ask for this message.
  void drop(const Arrived& message);
  /// Nothing is written into its memory any more.
  void withdraw(const Incoming& receive);
  /// Receives of inboxes that were promised a message which will not come, because this has ended.
  std::vector<Incoming*> take_orphans() { return std::exchange(orphans_, {}); }

  bool is_open() const { return static_cast<bool>(socket_); }
  bool has_taken() const { return frames_ > 0; }
  /// Why it has ended; empty while it has not.
  const std::string& end() const { return end_; }
  void say_goodbye();
  /// Whether all that was said has reached the peer's kernel, or cannot.
  bool all_said() const;

 private:
  struct Transfer {            // of a message that was granted, by id
    Incoming* into = nullptr;  // null: nobody wants it any more
    size_t offset = 0, bytes = 0;
  };
  void finish(const std::string& why);
  void orphan(Incoming*& receive);
  size_t receive_some();
  void digest();
  void begin_frame();
  void begin_eager(const Key& key);
  void begin_request(const Key& key);
  void begin_data();
  void end_payload();
  void grant(uint64_t id, size_t bytes, Incoming& receive);
  void consumed(uint64_t id, size_t bytes);
  void say(const FrameHeader& frame);

  int peer_;
  Socket socket_;
  const Readiness& ready_;
  Matching& matching_;
  std::string end_;
  bool goodbye_ = false;
  std::optional<int> alarm_;
  uint64_t frames_ = 0;

  static constexpr size_t kStage = size_t{64} << 10;
  std::unique_ptr<std::byte[]> stage_;  // what was received with a header, or ahead of one
  size_t stage_begin_ = 0, stage_end_ = 0;

  // The frame that is coming.
  FrameHeader frame_;
  size_t left_ = 0;              // bytes of its payload
  std::byte* target_ = nullptr;  // of the next one; null: nobody wants them
  Incoming* into_ = nullptr;     // of an eager message whose receive was there first
  // Of one that was not asked for yet; in `matching_` until its receive comes.
  Arrived* kept_ = nullptr;
  std::unique_ptr<Arrived> matched_;
  Incoming* matched_into_ = nullptr;

  std::unordered_map<uint64_t, Transfer> transfers_;
  std::vector<Incoming*> orphans_;
  size_t kept_bytes_ = 0;  // credit that the sender has not got back
  size_t owed_ = 0;        // of it, what can be given back
  std::string out_;        // answers
  bool wants_writable_ = false;
};

}  // namespace tutti::comm::tcp
