#include "tutti/device/emulated/thread_code.h"

#include "tutti/base/error.h"
#include "tutti/device/emulated/block.h"
#include "tutti/device/emulated/emulated_memory.h"
#include "tutti/device/emulated/sectors.h"

namespace tutti::device {
namespace {

Block& meeting_block(int line, const char* what) {
  if (!thread_place.meets)
    kernel_fault(fmt::format("line {}: {} in a kernel that is said to be flat", line, what));
  return *thread_place.meets;
}

}  // namespace

std::string place_of_block() {
  const Dim3& b = thread_place.block;
  return fmt::format("emulated device: kernel {}, block ({}, {}, {})", thread_place.function->name,
                     b.x, b.y, b.z);
}

void kernel_fault(const std::string& text) {
  throw DeviceError(
      fmt::format("{}, thread {}: {}", place_of_block(), thread_place.thread.x, text));
}

void meet_block(int line) { meeting_block(line, "a barrier").meet(line); }

void* shared_bytes(const void* site, size_t bytes, int line) {
  return meeting_block(line, "shared memory").shared(site, bytes);
}

void exchange_in_warp(const Exchange& exchange) {
  meeting_block(exchange.line, "a shuffle").exchange(exchange);
}

void look_closely(Access access, const void* at, size_t bytes, size_t alignment) {
  if (reinterpret_cast<uintptr_t>(at) % alignment != 0)
    kernel_fault(fmt::format("an access of {} bytes at {}, which is no multiple of {}", bytes, at,
                             alignment));
  if (!thread_place.memory->holds(at, bytes))
    kernel_fault(
        fmt::format("an access of {} bytes at {}, which is not within memory of the "
                    "device that is in use",
                    bytes, at));
  if (thread_place.sectors) thread_place.sectors->count(thread_place.thread.x, access, at, bytes);
}

}  // namespace tutti::device
