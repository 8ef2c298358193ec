#include "tutti/device/device.h"

#include <utility>

namespace tutti::device {

Memory::Memory(Device& device, size_t bytes, MemoryKind kind)
    : device_(&device), data_(bytes ? device.allocate(bytes, kind) : nullptr), bytes_(bytes),
      kind_(kind) {}

Memory::Memory(Memory&& other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)), kind_(other.kind_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(kind_, other.kind_);
  return *this;
}

Memory::~Memory() {
  if (data_) device_->release(data_, bytes_, kind_);
}

void settle(Device& device, Stream& stream, std::string_view what) {
  const std::unique_ptr<Event> reached = device.make_event();
  stream.record(*reached);
  device.wait(*reached, what);
}

}  // namespace tutti::device
