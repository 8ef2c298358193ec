#pragma once
// Arena: hands out pieces of a few large pieces of memory, and takes them back. First fit, by
// address; neighbouring free pieces become one.

#include <cstddef>
#include <map>
#include <span>

namespace tutti::comm {

/// Not thread-safe.
class Arena {
 public:
  static constexpr size_t kLine =
      128;  ///< what is handed out is aligned to it, and its size rounded

  /// More memory to hand out; aligned to kLine; lives as long as the arena.
  void add(std::span<std::byte> memory);
  /// Null when no free piece is as large.
  std::byte* take(size_t bytes);
  /// What take(bytes) gave.
  void give_back(std::byte* data, size_t bytes);

  static size_t rounded(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
  size_t free_bytes() const;

 private:
  std::map<std::byte*, size_t> free_;  // by address: bytes
};

}  // namespace tutti::comm
