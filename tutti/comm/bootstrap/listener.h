#pragma once
// Listener: a listening socket whose connections have to answer before they count. A new
// connection, a stranger, gets a challenge and has ten seconds for an answer of a fixed size.
//
// All listeners of a process share one small budget of strangers (kMost), so that callers without
// the job's secret cannot take the descriptors that files need. Where it is spent, a new connection
// replaces a random stranger of the listener and the host that hold the most: first the listener
// with the most strangers is taken, then the host with the most among them. An honest caller may be
// hit; its connection then ends before it was answered, and it connects again.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/bootstrap/socket.h"

namespace tutti::comm {

/// A connection that has sent its whole answer, which is not verified yet.
struct Stranger {
  Socket socket;
  Nonce challenge{};   ///< the challenge that was sent to it
  std::string answer;  ///< its answer, Protocol::hello_bytes bytes
};

/// Not thread-safe, except where a function says so.
class Listener {
 public:
  struct Protocol {
    size_t hello_bytes;                           ///< length of an answer
    std::string (*greeting)(const Nonce& nonce);  ///< returns the text sent to each new connection
  };
  /// Throws CommError where the kernel gives no descriptor.
  Listener(Socket socket, Protocol protocol);
  /// Ends the connections of its strangers.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Returns a socket that is readable when look() has something to do.
  const Socket& ready() const { return poll_; }
  /// Reads from strangers, then accepts a few connections; returns the strangers that have
  /// answered. Never blocks. Without descriptors it accepts none for a tenth of a second. Without
  /// memory or random numbers it throws std::bad_alloc or CommError; some strangers may be gone
  /// then, and it may be called again.
  std::vector<Stranger> look();
  /// Returns whether look() has to be called within a tenth of a second, though nothing is ready: a
  /// deadline or a pause will end. May be called by any thread.
  bool pending() const { return strangers_ > 0 || resting_; }
  /// Refuses connections from now on. May be called by any thread.
  void close();
  int port() const { return port_of(socket_); }

  static constexpr size_t kMost = 64;          ///< strangers of a process; fewer where it may open
                                               ///< fewer than eight times as many files
  static constexpr size_t kAcceptAtOnce = 16;  ///< connections that one look() accepts

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Waiting;
  struct Budget;
  static Budget& budget();
  static void forget(Budget& all, size_t index);
  static void evict_one(Budget& all, const Nonce& lot);
  void hear(Budget& all, uint64_t number, std::vector<Stranger>& answered);
  void accept_some(Budget& all, Time now);
  bool watch(int operation, const Socket& socket, uint32_t events, uint64_t number) const;

  Socket socket_, poll_;
  Protocol protocol_;
  std::atomic<size_t> strangers_ = 0;  // changed under the budget's mutex
  std::atomic<bool> resting_ = false;
  Time rests_until_{};
};

}  // namespace tutti::comm
