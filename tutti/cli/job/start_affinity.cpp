#include "tutti/cli/job/start_affinity.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace tutti {
namespace {

constexpr size_t kMaskBytes = 4096;  // for 32768 processors, more than a kernel supports
alignas(unsigned long) std::array<unsigned char, kMaskBytes> start_mask;
long start_mask_bytes = 0;  // 0: not known

/// Makes only this system call: neither libraries nor sanitizers have begun.
__attribute__((no_sanitize("address", "thread", "undefined"))) void remember_affinity(int, char**,
                                                                                      char**) {
  start_mask_bytes = syscall(SYS_sched_getaffinity, 0, kMaskBytes, start_mask.data());
}

/// Runs before the constructors of all libraries, libgomp's among them.
__attribute__((section(".preinit_array"),
               used)) void (*remember_at_start)(int, char**, char**) = remember_affinity;

}  // namespace

void restore_start_affinity() {
  if (start_mask_bytes > 0)
    syscall(SYS_sched_setaffinity, 0, static_cast<size_t>(start_mask_bytes), start_mask.data());
}

}  // namespace tutti
