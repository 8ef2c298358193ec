#pragma once
// NumberBlock: numbers that change from step to step, on their way from the host to a device.

#include <array>
#include <cstddef>
#include <memory>

#include "tutti/device/device.h"

namespace tutti::plan {

/// A block of memory of a device, whose next contents the host writes while those before are still
/// in use: into one of a few pinned slots, which are used in turn. Not thread-safe.
class NumberBlock {
 public:
  NumberBlock(device::Device& device, size_t bytes);

  std::byte* data() const { return block_.data(); }
  size_t bytes() const { return block_.bytes(); }
  /// Returns where the host writes the next contents. Waits if the device is so far behind that
  /// all slots are in use.
  std::byte* open();
  /// Copies bytes [begin, end) of what was written there to the block, in the order of the stream.
  void send(device::Stream& stream, size_t begin, size_t end);

 private:
  struct Slot {
    device::Memory memory;
    std::unique_ptr<device::Event> sent;
    bool used = false;
  };
  device::Device& device_;
  device::Memory block_;
  std::array<Slot, 4> slots_;
  size_t next_ = 0;
};

}  // namespace tutti::plan
