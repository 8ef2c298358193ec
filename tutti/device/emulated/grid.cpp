#include "tutti/device/emulated/grid.h"

#include <numeric>

#include "tutti/base/error.h"
#include "tutti/device/emulated/thread_code.h"

namespace tutti::device {
namespace {

constexpr unsigned kMostThreads = 1024;
constexpr unsigned kMostBlocksX = 0x7FFFFFFFu, kMostBlocks = 65535;

/// Numbers in [0, count), each once.
class BlockOrder {
 public:
  BlockOrder(uint64_t count, Chance& chance) : count_(count), next_(chance.below_many(count)) {
    if (chance.natural()) return;
    do step_ = 1 + chance.below_many(count);
    while (std::gcd(step_, count) != 1);
  }
  uint64_t next() {
    const uint64_t now = next_;
    next_ = (next_ + step_) % count_;
    return now;
  }

 private:
  uint64_t count_, next_, step_ = 1;
};

/// Sets thread_place for a launch, and no launch at its end.
class PlaceOfLaunch {
 public:
  PlaceOfLaunch(const Launch& launch, const GridMemory& memory, Block& block) {
    const auto touched = memory.memory->touched();
    thread_place = {.thread = {0, 0, 0},
                    .block = {0, 0, 0},
                    .block_size = {launch.function->threads, 1, 1},
                    .grid_size = launch.grid,
                    .function = launch.function,
                    .meets = launch.function->flat ? nullptr : &block,
                    .memory = memory.memory,
                    .memory_begin = reinterpret_cast<uintptr_t>(touched.data()),
                    .memory_bytes = touched.size(),
                    .sectors = memory.sectors};
  }
  PlaceOfLaunch(const PlaceOfLaunch&) = delete;
  PlaceOfLaunch& operator=(const PlaceOfLaunch&) = delete;
  ~PlaceOfLaunch() { thread_place = {}; }
};

Dim3 block_at(uint64_t number, const Dim3& grid) {
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
          static_cast<unsigned>(number / grid.x / grid.y)};
}

}  // namespace

void check_launch(const Launch& launch) {
  const DeviceFunction& f = *launch.function;
  const Dim3& grid = launch.grid;
  const auto refuse = [&](const std::string& text) {
    throw DeviceError(fmt::format("emulated device: kernel {}: {}", f.name, text));
  };
  if (f.threads == 0 || f.threads > kMostThreads)
    refuse(fmt::format("{} threads a block, not 1 to {}", f.threads, kMostThreads));
  if (f.argument_bytes > kMostArgumentBytes)
    refuse(
        fmt::format("{} bytes of arguments, of at most {}", f.argument_bytes, kMostArgumentBytes));
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > kMostBlocksX || grid.y > kMostBlocks ||
      grid.z > kMostBlocks)
    refuse(fmt::format("a grid of {} x {} x {} blocks, not 1 to {} x {} x {}", grid.x, grid.y,
                       grid.z, kMostBlocksX, kMostBlocks, kMostBlocks));
}

void run_grid(const Launch& launch, const GridMemory& memory, Block& block, Chance& chance) {
  const DeviceFunction& f = *launch.function;
  const auto& kernel = *static_cast<const EmulatedKernel*>(f.entry);
  const uint64_t count = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const PlaceOfLaunch place(launch, memory, block);
  const bool backward = chance.below(2) == 1;
  BlockOrder order(count, chance);
  if (!f.flat) block.begin(f, launch.arguments);
  for (uint64_t b = 0; b < count; ++b) {
    thread_place.block = block_at(order.next(), launch.grid);
    if (memory.sectors) memory.sectors->begin_block(f.threads);
    if (f.flat)
      kernel.threads(launch.arguments, f.threads, backward);
    else
      block.run(chance);
    if (memory.sectors) memory.sectors->end_block();
  }
}

}  // namespace tutti::device
