#pragma once
// Mirrors: copies on a device of memory of the host, such as weights and optimizer state. All who
// use the same memory of the host share one mirror, so that an evaluation finds the weights where
// training has left them.

#include <cstddef>
#include <map>
#include <memory>

#include "tutti/device/device.h"

namespace tutti::device {

/// A copy of `bytes` at `host`. At any time the host's copy is the right one, or both are the same,
/// or the device's is newer.
struct Mirror {
  std::byte* host = nullptr;
  Memory memory;
  bool device_is_newer = false;

  size_t bytes() const { return memory.bytes(); }
  std::byte* data() const { return memory.data(); }
};

/// Not thread-safe, as its device.
class Mirrors {
 public:
  explicit Mirrors(Device& device);
  ~Mirrors();

  /// Returns the mirror of the host's memory, which lives until nobody holds it any more and begins
  /// with undefined contents. Memory that overlaps another mirror without being the same is a bug.
  std::shared_ptr<Mirror> of(std::byte* host, size_t bytes);
  /// Makes both copies the same where the device's is not newer, after what `stream` has under way.
  /// Waits.
  void upload(Mirror& mirror, Stream& stream);
  /// Makes both copies the same where the device's is newer, after what `stream` has under way.
  /// Waits.
  void download(Mirror& mirror, Stream& stream);
  /// Copies between any memory of the host and memory of the device, in the order of the stream,
  /// through pinned memory. Waits.
  void to_device(std::byte* to, const std::byte* from, size_t bytes, Stream& stream);
  void to_host(std::byte* to, const std::byte* from, size_t bytes, Stream& stream);

 private:
  /// Returns pinned memory, which is allocated at the first call.
  std::byte* staging();

  Device& device_;
  Memory staging_;
  std::map<const std::byte*, std::weak_ptr<Mirror>> mirrors_;
};

}  // namespace tutti::device
