#pragma once
// DeviceGradients: gradients that stay on a device. Micro-batches are added up there, and a
// gradient that is not finite keeps the update from the weights.

#include <cstddef>
#include <map>
#include <span>

#include "tutti/device/device.h"

namespace tutti::plan {

/// Not thread-safe. All calls put work on a stream, by the device's kernels, or by work of the host
/// where it has none and host work reads its memory.
class DeviceGradients {
 public:
  /// Whether the device can do this at all.
  static bool possible(const device::Device& device);

  /// `bytes`: of an arena, whole cache lines.
  DeviceGradients(device::Device& device, size_t bytes, device::Stream& stream);

  /// Returns the arena on the device for one of the host's, which begins with zeros.
  std::byte* arena(const void* host, device::Stream& stream);
  /// Notes which float of an arena is the first that is not finite: found() is its index, or -1,
  /// and behind it the numbers of the device that stand at `numbers`, at most kMostNumbers.
  void look(std::byte* arena, std::span<const float* const> numbers, device::Stream& stream);
  /// Does the same, and what stop() would do then.
  void look_and_stop(std::byte* arena, std::span<const float* const> numbers,
                     std::span<std::byte> scalars, device::Stream& stream);
  const std::byte* found() const { return memory_.data(); }
  static constexpr size_t kFoundBytes = 8;  ///< an int64_t
  static constexpr size_t kMostNumbers = 32;
  /// Adds an arena to another.
  void add(std::byte* into, const std::byte* from, device::Stream& stream);
  /// If any look() since the last begin() has found something: makes `gradients` 0, an arena or
  /// another result of a pass that an update reads, in whole packs of 4 floats; and `scalars`,
  /// among which is the learning rate.
  void stop(std::span<std::byte> gradients, std::span<std::byte> scalars, device::Stream& stream);
  /// Returns the size of an arena.
  size_t bytes() const { return bytes_; }
  /// Forgets what was found.
  void begin(device::Stream& stream);

  size_t memory_bytes() const;

 private:
  unsigned runs() const;

  device::Device& device_;
  const bool has_kernels_;
  const size_t bytes_;
  device::Memory memory_;                         // findings, then what each block has found
  std::map<const void*, device::Memory> arenas_;  // by the host's
};

}  // namespace tutti::plan
