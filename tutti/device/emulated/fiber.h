#pragma once
// Fibers: functions that run on stacks of their own, one at a time, on the thread that resumes
// them.

#include <cstddef>

#include "tutti/device/emulated/sanitizers.h"
#include "tutti/device/emulated/stack_switch.h"

namespace tutti::device {

/// Runs one function after the other on a stack of its own. All calls until a function returns must
/// come from one thread.
class Fiber {
 public:
  using Function = void (*)(void* argument) noexcept;

  /// Throws DeviceError if the system has no memory for the stack.
  Fiber();
  /// A function that has not returned is abandoned: what it has on the stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next resume() call `function`; the one before must have returned.
  void begin(Function function, void* argument);
  /// Runs the function until it calls leave() or returns.
  void resume();
  /// Returns to the caller of resume(). Called by the function.
  void leave();

 private:
  static void run();
  std::byte* stack() const;

  std::byte* memory_ = nullptr;
  StackPlace inside_{}, outside_{};
  StackMarks marks_;
  Function function_ = nullptr;
  void* argument_ = nullptr;
};

}  // namespace tutti::device
