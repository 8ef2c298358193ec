#pragma once
// Readiness: finds the sockets of a switchboard that are ready. Internal to comm/transport/tcp.

#include <cstdint>

#include "tutti/comm/bootstrap/socket.h"

namespace tutti::comm::tcp {

class Readiness {
 public:
  enum class What : uint32_t { listener, inbound, outbound };
  struct Event {
    What what{};
    uint32_t number = 0;  ///< a rank
    bool readable = false, writable = false;
  };

  Readiness();
  /// Watches `socket` until it is closed. Reports readable sockets, and writable ones on request.
  void add(const Socket& socket, What what, uint32_t number, bool writable = false) const;
  void change(const Socket& socket, What what, uint32_t number, bool writable) const;
  /// Returns the number of events; more may come with the next call. Never blocks.
  static constexpr int kMost = 64;
  int look(Event* events) const;

 private:
  Socket poll_;
};

}  // namespace tutti::comm::tcp
