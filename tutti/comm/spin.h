#pragma once
// What a polling loop does between two looks.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::comm {

/// Tells the core that it is spinning: saves power and gives a hyper-thread's sibling the execution
/// units. No kernel call.
inline void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tutti::comm
