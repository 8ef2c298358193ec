#pragma once
// The emulated processor as a kernel sees it: where its thread stands in the launch, and how it
// meets others. device_code.h gives all this CUDA's names.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tutti/device/device.h"

namespace tutti::device {

class Block;
class EmulatedMemory;
class SectorCounter;
enum class Access : uint8_t;

/// The emulated thread that runs now on this thread of the host.
struct ThreadPlace {
  Dim3 thread, block, block_size, grid_size;
  const DeviceFunction* function = nullptr;
  Block* meets = nullptr;                        ///< whom it meets; null: the kernel is flat
  const EmulatedMemory* memory = nullptr;        ///< where it may read and write
  uintptr_t memory_begin = 0, memory_bytes = 0;  ///< the range of `memory`, if it is of the device
  SectorCounter* sectors = nullptr;              ///< null: accesses are not counted
};
inline constinit thread_local ThreadPlace thread_place;

inline const Dim3& thread_index() { return thread_place.thread; }
inline const Dim3& block_index() { return thread_place.block; }
inline const Dim3& block_size() { return thread_place.block_size; }
inline const Dim3& grid_size() { return thread_place.grid_size; }

constexpr unsigned kWarp = 32;  ///< threads of a warp
inline unsigned lane() { return thread_place.thread.x % kWarp; }

/// Returns "kernel K, block (x, y, z)" for the block at thread_place.
std::string place_of_block();
/// Throws DeviceError that names the kernel and the thread at thread_place.
[[noreturn]] void kernel_fault(const std::string& text);

/// Returns once all threads of the block have called it, from the same line.
void meet_block(int line);
/// Returns an array that the block shares; `site` stands for its declaration.
void* shared_bytes(const void* site, size_t bytes, int line);

/// Looks at an access that is not plainly right, or has to be counted.
void look_closely(Access access, const void* at, size_t bytes, size_t alignment);
/// Looks at one access to memory, of a T that is read or written as a whole.
template <class T>
void look_at_access(Access access, const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const ThreadPlace& place = thread_place;
  if (address % alignof(T) != 0 || address - place.memory_begin >= place.memory_bytes ||
      place.sectors) [[unlikely]]
    look_closely(access, at, sizeof(T), alignof(T));
}

/// One thread's part in an exchange of values among lanes of its warp.
struct Exchange {
  unsigned mask = 0;           ///< the lanes that take part
  unsigned source = 0;         ///< the lane whose value it gets
  const void* mine = nullptr;  ///< `bytes` each
  void* theirs = nullptr;
  size_t bytes = 0;
  int line = 0;
};
/// Returns once all lanes of the mask have called it, with the same mask.
void exchange_in_warp(const Exchange& exchange);

template <class T>
T exchanged(unsigned mask, T value, unsigned source, int line) {
  T theirs;
  exchange_in_warp({mask, source, &value, &theirs, sizeof(T), line});
  return theirs;
}

/// DeviceFunction::entry of a kernel of the emulated device.
struct EmulatedKernel {
  /// Runs the thread at thread_place.
  void (*thread)(const void* arguments);
  /// Runs `count` threads that never meet, one after the other, from the last to the first if
  /// `backward`.
  void (*threads)(const void* arguments, unsigned count, bool backward);
};

template <auto Kernel, class Args>
constexpr EmulatedKernel emulated_kernel(void (*)(Args)) {
  return {.thread = [](const void* arguments) { Kernel(*static_cast<const Args*>(arguments)); },
          .threads =
              [](const void* arguments, unsigned count, bool backward) {
                const Args& args = *static_cast<const Args*>(arguments);
                for (unsigned i = 0; i < count; ++i) {
                  thread_place.thread.x = backward ? count - 1 - i : i;
                  Kernel(args);
                }
              }};
}

}  // namespace tutti::device
