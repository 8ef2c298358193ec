#pragma once
// A wire between two ranks of a test, by their addresses in a store.

#include <memory>

#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {

inline TcpWire wire_of_two(Store& store, int rank) {
  const tcp::Switchboard::Options options{.secret = "s", .address = "127.0.0.1"};
  return {std::make_shared<tcp::Switchboard>(store, "job", rank, 2, options), rank, 2};
}

}  // namespace tutti::comm
