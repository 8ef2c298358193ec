#pragma once
// WindowRegistry: the memory of this process that other ranks of the node can see, so that a
// message can be read in place.

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "tutti/comm/transport/window.h"

namespace tutti::comm {

/// Shared by a communicator and those split from it. Thread-safe.
class WindowRegistry {
 public:
  /// A place in a window, in the form that ranks exchange: `member` is the index of the
  /// neighbour whose memory it is.
  struct Location {
    uint64_t window = 0;
    uint64_t member = 0;
    uint64_t offset = 0;
  };
  /// Marks ranks that are threads: every address is a location.
  static constexpr uint64_t kSameProcess = UINT64_MAX;

  explicit WindowRegistry(bool same_process) : same_process_(same_process) {}

  void add(uint64_t id, const Window* window);
  void remove(uint64_t id);
  /// Returns where [data, data + bytes) lies, if peers can see it.
  std::optional<Location> locate(const std::byte* data, size_t bytes) const;
  /// Returns the address, in this process, of the `bytes` at another rank's location; null when
  /// this rank has no such window (any more), or the window no such bytes. A location comes from a
  /// message, so it may hold any values.
  const std::byte* address(const Location& location, size_t bytes) const;
  /// Returns a version that changes with every add() and remove(): earlier results of locate() may
  /// then be out of date, even for the same address.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }

 private:
  bool same_process_;
  mutable std::mutex mutex_;
  std::map<uint64_t, const Window*> windows_;
  std::atomic<uint64_t> version_{0};
};

}  // namespace tutti::comm
