#pragma once
// Inbound: a connection at its receiver. It receives frames, puts messages where they belong, and
// answers. Internal to comm/transport/tcp.

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
  /// The sender has proved itself. `ready` and `matching` outlive this.
  Inbound(int peer, Socket socket, const Readiness& ready, Matching& matching);

  int peer() const { return peer_; }
  /// Receives available data, up to some megabytes. Returns the rank of an alarm among them.
  std::optional<int> take();
  /// Sends answers that are left.
  void answer();
  /// Gives a kept or announced message to its receive.
  void match(std::unique_ptr<Arrived> message, Incoming& receive);
  /// Drops a message for which no receive will come.
  void drop(const Arrived& message);
  /// Stops writing into the memory of `receive`.
  void withdraw(const Incoming& receive);
  /// Returns the receives of inboxes whose promised message will not come, because this has ended.
  std::vector<Incoming*> take_orphans() { return std::exchange(orphans_, {}); }

  bool is_open() const { return static_cast<bool>(socket_); }
  bool has_taken() const { return frames_ > 0; }
  /// Returns why it has ended; empty while it has not.
  const std::string& end() const { return end_; }
  void say_goodbye();
  /// Returns whether all answers have reached the peer's kernel, or cannot.
  bool all_sent() const;

 private:
  struct Transfer {            // a message that was granted, by id
    Incoming* into = nullptr;  // null: no receive wants it any more
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
  std::unique_ptr<std::byte[]> stage_;  // data received with a header, or ahead of one
  size_t stage_begin_ = 0, stage_end_ = 0;

  // The frame that is arriving.
  FrameHeader frame_;
  size_t left_ = 0;              // bytes of its payload
  std::byte* target_ = nullptr;  // place of the next byte; null: the payload is dropped
  Incoming* into_ = nullptr;     // receive of an eager message that was posted before it came
  // An eager message without a receive; in `matching_` until its receive comes.
  Arrived* kept_ = nullptr;
  std::unique_ptr<Arrived> matched_;
  Incoming* matched_into_ = nullptr;

  std::unordered_map<uint64_t, Transfer> transfers_;
  std::vector<Incoming*> orphans_;
  size_t kept_bytes_ = 0;  // credit that the sender has not got back
  size_t owed_ = 0;        // part of kept_bytes_ that can be given back
  std::string out_;        // answers
  bool wants_writable_ = false;
};

}  // namespace tutti::comm::tcp
