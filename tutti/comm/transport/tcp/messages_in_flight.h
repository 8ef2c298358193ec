#pragma once
// A message at its sender and a message at its receiver, from the time when they are posted. The
// caller that posts them owns them and keeps them in place until `done` or cancelled. Internal to
// comm/transport/tcp.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tutti::comm::tcp {

/// Stands for any rank that sends to an inbox, in place of a peer.
inline constexpr int kAnybody = -1;

/// Messages with equal keys arrive in their order.
struct Key {
  int peer = 0;  ///< a rank of the whole group, or kAnybody
  int32_t tag = 0;
  uint64_t wire = 0;
  bool operator==(const Key&) const = default;
};
struct HashOfKey {
  size_t operator()(const Key& key) const {
    const uint64_t mixed =
        (key.wire ^ static_cast<uint64_t>(key.peer) << 32 ^ static_cast<uint32_t>(key.tag)) *
        0x9E3779B97F4A7C15u;
    return std::hash<uint64_t>()(mixed ^ mixed >> 29);
  }
};

struct Outgoing {
  Key key;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  bool taken = false;  ///< done only when a receive for it is posted
  std::atomic<bool> done{true};

  uint64_t id = 0;   // 0: not announced
  size_t begun = 0;  // bytes in data frames so far
};

struct Incoming {
  Key key;
  std::byte* data = nullptr;
  size_t room = 0;
  bool exactly = true;  ///< `room` bytes are expected, not up to as many
  int from = 0;         ///< sender of its message
  size_t arrived = 0;   ///< bytes of the message; if unexpected, none was written
  std::atomic<bool> done{true};

  bool fits() const { return exactly ? arrived == room : arrived <= room; }
};

}  // namespace tutti::comm::tcp
