#pragma once
// Launches on the emulated device.

#include "tutti/device/device.h"
#include "tutti/device/emulated/block.h"
#include "tutti/device/emulated/chance.h"
#include "tutti/device/emulated/emulated_memory.h"
#include "tutti/device/emulated/sectors.h"

namespace tutti::device {

/// Throws DeviceError for a launch that no device accepts: too many threads, blocks, arguments.
void check_launch(const Launch& launch);

/// The memory that a kernel reads and writes.
struct GridMemory {
  const EmulatedMemory* memory;
  SectorCounter* sectors = nullptr;  ///< null: accesses are not counted
};

/// Runs all threads of the launch on this thread and returns, its blocks in an order that chance
/// decides. Throws DeviceError for what the kernel does wrong. The memory is open.
void run_grid(const Launch& launch, const GridMemory& memory, Block& block, Chance& chance);

}  // namespace tutti::device
