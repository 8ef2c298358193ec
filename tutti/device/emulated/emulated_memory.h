#pragma once
// Memory of the emulated device, which code of the host may not touch.

#include <cstddef>
#include <functional>
#include <map>
#include <span>

#include "tutti/device/device.h"

namespace tutti::device {

/// A range of addresses that nobody may touch but while it is open, and pinned memory. New memory
/// of both kinds is filled with NaN. Memory of the device is taken from the first gap that is large
/// enough, at multiples of 256, and between two pieces there is a gap.
class EmulatedMemory {
 public:
  /// Throws DeviceError if the system has no such range of addresses.
  explicit EmulatedMemory(size_t bytes);
  ~EmulatedMemory();
  EmulatedMemory(const EmulatedMemory&) = delete;
  EmulatedMemory& operator=(const EmulatedMemory&) = delete;

  /// Throws DeviceError with what was asked for and what is free. The memory must be closed.
  std::byte* allocate(size_t bytes, MemoryKind kind);
  void release(std::byte* data, MemoryKind kind) noexcept;

  /// Lets this process touch memory of the device, until close().
  void open();
  void close() noexcept;

  /// Returns whether all these bytes lie in one piece of memory that was not released.
  bool holds(const void* at, size_t bytes) const;
  /// Returns the addresses that have ever been in use.
  std::span<const std::byte> touched() const { return {begin_, touched_}; }

  size_t bytes_in_use() const { return in_use_; }
  size_t most_bytes_in_use() const { return most_in_use_; }
  size_t free_bytes() const { return bytes_ - in_use_; }

 private:
  using Pieces = std::map<std::byte*, size_t, std::less<>>;  ///< bytes by address
  std::byte* allocate_pinned(size_t bytes);
  /// Sets how pages may be touched: those from offset `begin` to `end`.
  void protect(size_t begin, size_t end, int access);

  size_t bytes_;        ///< that may be in use
  size_t range_bytes_;  ///< size of the range of addresses: more, because of gaps
  std::byte* mapping_ = nullptr;
  std::byte* begin_ = nullptr;  ///< in the mapping, at a multiple of its pages

  size_t touched_ = 0;  ///< where the pages end that have ever been in use
  size_t in_use_ = 0, most_in_use_ = 0;
  bool open_ = false;
  Pieces pieces_, pinned_;
};

/// Makes a fault at memory of an emulated device name itself on the error output before the process
/// ends, unless the program handles faults itself.
void name_faults();

}  // namespace tutti::device
