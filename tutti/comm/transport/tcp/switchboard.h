#pragma once
// Switchboard: all connections of this rank to the others of a group, and the matching of messages
// and receives. Internal to comm/transport/tcp; callers use tcp_wire.h.
//
// A rank listens on its own port and puts its address into the store. It connects to another rank
// with the first message to it, so it has only the connections that it uses. There is no thread:
// each call moves messages.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "tutti/comm/bootstrap/listener.h"
#include "tutti/comm/transport/tcp/frame.h"
#include "tutti/comm/transport/tcp/home.h"
#include "tutti/comm/transport/tcp/inbound.h"
#include "tutti/comm/transport/tcp/matching.h"
#include "tutti/comm/transport/tcp/outbound.h"
#include "tutti/comm/transport/tcp/readiness.h"

namespace tutti::comm::tcp {

/// Thread-safe.
class Switchboard {
 public:
  struct Options {
    std::string secret;   ///< secret of the group; not empty
    std::string address;  ///< the only address to listen on, as for own_address(); empty: all
  };
  /// Not collective. `store` outlives this. Throws CommError.
  Switchboard(Store& store, std::string prefix, int rank, int size, const Options& options);
  /// Says goodbye to connected ranks. Not collective; takes seconds at most.
  ~Switchboard();
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;

  void send(Outgoing& message);
  void receive(Incoming& message);
  void withdraw(Outgoing& message);
  void withdraw(Incoming& message);
  /// Lets messages of this wire and tag be received by kAnybody from now on; none may have come.
  void open_inbox(uint64_t wire, int32_t tag);
  void close_inbox(uint64_t wire, int32_t tag);
  /// Receives and sends as much as possible. Never blocks.
  void move();
  /// Closes a wire: no more receives of it will be posted.
  void close(uint64_t wire);

  void raise_alarm();
  std::optional<int> alarm();
  /// Returns why a rank will not send or receive any more; empty as far as is known. Connects to a
  /// rank that it is not connected with, to find out.
  std::string lost(int rank);
  /// Does the same for a rank that is known to live: a failed look-up then proves nothing.
  std::string left(int rank, bool find_out);

 private:
  using Time = std::chrono::steady_clock::time_point;
  Outbound& outbound(int peer);
  std::string end_of(int rank, bool connect, bool lives);
  void move_locked();
  void receive_locked(Incoming& message);
  void admit(Stranger& stranger);
  bool knows(const Stranger& stranger, const Hello& hello, std::string& transcript) const;
  void tell_others(int by);
  void flush(std::chrono::milliseconds time, bool opening);

  std::mutex mutex_;
  GroupInStore group_;
  Readiness ready_;
  std::optional<Listener> listener_;
  Time next_listener_look_{};
  Matching matching_;
  std::unordered_map<int, std::unique_ptr<Inbound>> inbound_;  // by rank
  std::unordered_map<int, std::unique_ptr<Outbound>> outbound_;
  std::vector<Outbound*> opening_;
  std::optional<int> alarm_;
};

}  // namespace tutti::comm::tcp
