#pragma once
// Switchboard: all connections of this rank to the others of a group, and which message is for
// which receive. Internal to comm/transport/tcp; the way in is tcp_wire.h.
//
// A rank listens on a port of its own and leaves its address in the store. It connects to another
// one with the first message to it, so it has only the connections that it uses. Whoever calls
// moves messages: there is no thread.

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
    std::string secret;   ///< of the group; not empty
    std::string address;  ///< to listen on alone, as own_address(); empty: all of this host
  };
  /// Of this rank alone. `store` outlives it. Throws CommError.
  Switchboard(Store& store, std::string prefix, int rank, int size, const Options& options);
  /// Says goodbye to those that it is connected with. Of this rank alone; takes seconds at most.
  ~Switchboard();
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;

  void send(Outgoing& message);
  void receive(Incoming& message);
  void withdraw(Outgoing& message);
  void withdraw(Incoming& message);
  /// From now on messages of this wire and tag are received by the key of kAnybody; none has come.
  void open_inbox(uint64_t wire, int32_t tag);
  void close_inbox(uint64_t wire, int32_t tag);
  /// Takes in and sends out what can be. Never blocks.
  void move();
  /// No more messages of this wire will be asked for.
  void close(uint64_t wire);

  void raise_alarm();
  std::optional<int> alarm();
  /// Why a rank will not send or take any more; empty as far as is known. Connects to one that it
  /// is not connected with, to find out.
  std::string lost(int rank);
  /// The same of one that is known to live: that it cannot be looked up any more says nothing then.
  std::string left(int rank, bool find_out);

 private:
  using Time = std::chrono::steady_clock::time_point;
  Outbound& outbound(int peer);
  std::string end_of(int rank, bool connect, bool lives);
  void move_locked();
  void receive_locked(Incoming& message);
  void admit(Stranger& stranger);
  bool knows(const Stranger& stranger, const Hello& hello, std::string& said) const;
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
