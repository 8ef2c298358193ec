#include "tutti/base/numeric/denormals.h"

#include <cstdint>

namespace tutti {

bool flush_denormals() {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;  // in MXCSR
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushToZero | kDenormalsAreZero);
  return true;
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;  // in FPCR: operands and results
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control |= kFlushToZero;
  asm volatile("msr fpcr, %0" : : "r"(control));
  return true;
#else
  return false;
#endif
}

}  // namespace tutti
