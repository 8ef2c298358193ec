#pragma once
// Outbound: a connection at its sender. It finds the receiver, proves itself, sends frames and
// receives answers. Internal to comm/transport/tcp.

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/home.h"
#include "tutti/comm/transport/tcp/messages_in_flight.h"
#include "tutti/comm/transport/tcp/readiness.h"

namespace tutti::comm::tcp {

class Outbound {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `group` and `ready` outlive this. Connects from the first advance() on.
  Outbound(int peer, const GroupInStore& group, const Readiness& ready);

  void post(Outgoing& message);
  /// Stops reading from the memory of `message`.
  void withdraw(Outgoing& message);
  void say(const FrameHeader& frame);
  /// Looks up the receiver in the store and connects, until the connection is open or ended.
  void advance(Time now);
  void on_ready(bool readable, bool writable);
  /// Sends as much as possible.
  void write();

  bool is_opening() const { return phase_ != Phase::open && phase_ != Phase::ended; }
  bool is_open() const { return phase_ == Phase::open; }
  /// Returns whether the store had an address of the peer.
  bool has_found() const { return !addresses_.empty(); }
  /// Return why it has ended, and when; the reason is empty while it has not.
  const std::string& end() const { return end_; }
  Time ended_at() const { return ended_at_; }
  /// Returns whether all frames have reached the peer's kernel, or cannot.
  bool all_sent() const;

 private:
  enum class Phase { look_up, connect, greet, welcome, open, ended };
  struct Frame {
    FrameHeader header;
    const std::byte* payload = nullptr;
    std::unique_ptr<std::byte[]> own = {};  // copy of the payload, when its sender has withdrawn it
    Outgoing* source = nullptr;
    size_t sent = 0;  // bytes, with the header
    size_t bytes() const { return sizeof header + (payload ? header.bytes : 0); }
  };
  void finish(const std::string& why);
  void look_up(Time now);
  void connect(Time now);
  enum class Failure { refused, ended, silent };
  void try_next(const std::string& reason, Failure failure);
  void greet();
  void take_welcome();
  bool receive_exactly(size_t bytes);
  void hear();
  bool hear_some();
  void obey(const FrameHeader& frame);
  void push_piece();
  bool has_data_frame() const;
  void written(size_t bytes);
  void want_writable(bool wanted);

  int peer_;
  const GroupInStore& group_;
  const Readiness& ready_;
  Phase phase_ = Phase::look_up;
  Socket socket_;
  std::string end_;
  Time ended_at_{};
  bool goodbye_ = false;

  // Used until the connection is open.
  Home home_;
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  Time next_try_{}, deadline_{};
  std::chrono::milliseconds pause_{1};
  int refused_rounds_ = 0, ended_rounds_ = 0;
  bool round_refused_ = true, warned_ = false;
  Hello hello_;
  std::string expected_;  // the text that the welcome's proof must cover

  std::string in_;
  std::deque<Frame> queue_;
  std::deque<Outgoing*> granted_;  // each sends a piece at a time
  std::unordered_map<uint64_t, Outgoing*> announced_;
  uint64_t last_id_ = 0;
  size_t credit_ = kCredit;
  bool wants_writable_ = false;
};

}  // namespace tutti::comm::tcp
