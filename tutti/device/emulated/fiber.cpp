#include "tutti/device/emulated/fiber.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

constexpr size_t kStackBytes = size_t{192} << 10;  // pages that are not touched take no memory
constexpr size_t kGuardBytes = size_t{64} << 10;   // below it: a stack that is too deep crashes

thread_local Fiber* first_entered = nullptr;

/// Returns another distance from the end for each stack: at equal distances, what the threads of a
/// block touch would lie in the same few lines of the caches.
size_t next_distance() {
  static std::atomic<size_t> stacks{0};
  return stacks.fetch_add(1, std::memory_order_relaxed) % 64 * 17 * 64;
}

}  // namespace

Fiber::Fiber() {
  void* const memory = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0)
    throw DeviceError(
        fmt::format("emulated device: no memory for a thread's stack: {}", std::strerror(errno)));
  memory_ = static_cast<std::byte*>(memory);
  begin_stack(inside_, stack(), kStackBytes - next_distance(), run);
}

Fiber::~Fiber() {
  allow_access(stack(), kStackBytes);  // the stack of an abandoned function is still marked
  munmap(memory_, kGuardBytes + kStackBytes);
}

std::byte* Fiber::stack() const { return memory_ + kGuardBytes; }

void Fiber::begin(Function function, void* argument) {
  function_ = function;
  argument_ = argument;
}

void Fiber::resume() {
  first_entered = this;
  marks_.enter(stack(), kStackBytes);
  switch_stack(outside_, inside_);
  marks_.came_back();
}

void Fiber::leave() {
  marks_.leave();
  switch_stack(inside_, outside_);
  marks_.entered();
}

// Between two functions another thread may resume the fiber, so nothing here belongs to a thread.
void Fiber::run() {
  Fiber* const self = first_entered;
  self->marks_.entered();
  for (;;) {
    self->function_(self->argument_);
    self->leave();
  }
}

}  // namespace tutti::device
