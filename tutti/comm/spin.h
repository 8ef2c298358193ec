#pragma once
// The pause of a polling loop between two polls.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::comm {

/// Tells the core that it is spinning: this saves power and gives a hyper-thread's sibling the
/// execution units. Makes no kernel call.
inline void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace tutti::comm
