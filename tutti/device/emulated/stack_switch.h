#pragma once
// Going on with another stack: a dozen instructions on x86-64, the system's functions elsewhere.

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace tutti::device {

/// Where a stack was left.
struct StackPlace {
#if defined(__x86_64__)
  void* top = nullptr;  ///< there lie the registers that a call keeps
#else
  ucontext_t registers{};
#endif
};

/// Makes the first switch to `place` call `function`, which must not return.
void begin_stack(StackPlace& place, std::byte* memory, size_t bytes, void (*function)());

/// Goes on at `to`, and returns once another call goes on at `from`.
void switch_stack(StackPlace& from, StackPlace& to);

}  // namespace tutti::device
