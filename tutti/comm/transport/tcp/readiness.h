#pragma once
// Which sockets of a switchboard are ready. Internal to comm/transport/tcp.

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
  /// Until it is closed. Whether it is readable is always told, whether writable only on demand.
  void add(const Socket& socket, What what, uint32_t number, bool writable = false) const;
  void change(const Socket& socket, What what, uint32_t number, bool writable) const;
  /// Never blocks. Returns how many there are; more may come with the next call.
  static constexpr int kMost = 64;
  int look(Event* events) const;

 private:
  Socket poll_;
};

}  // namespace tutti::comm::tcp
