#pragma once
// Arena: hands out pieces of a few large pieces of memory, and takes them back. First fit, by
// address; neighbouring free pieces are joined.

#include <cstddef>
#include <map>
#include <span>

namespace tutti::comm {

/// Not thread-safe.
class Arena {
 public:
  static constexpr size_t kLine = 128;  ///< pieces are aligned to it, and sizes rounded up to it

  /// Adds memory to hand out; aligned to kLine; lives as long as the arena.
  void add(std::span<std::byte> memory);
  /// Returns a piece; null when no free piece is as large.
  std::byte* take(size_t bytes);
  /// Takes back a piece that take(bytes) returned.
  void give_back(std::byte* data, size_t bytes);

  static size_t rounded(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
  size_t free_bytes() const;

 private:
  std::map<std::byte*, size_t> free_;  // bytes by address
};

}  // namespace tutti::comm
