#include "tutti/cli/program.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/numeric/denormals.h"
#include "tutti/cli/command_line.h"
#include "tutti/cli/flags/terminal.h"
#include "tutti/cli/job/launcher_watch.h"
#include "tutti/cli/job/lifetime.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/plan/team_places.h"

namespace tutti::cli {

namespace {

// Where OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY are set, libgomp binds the first thread to
// one place when the program is loaded, before main. Threads outside of a team, and processes,
// inherit this: readers, progress threads, mpirun and all of its ranks.

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

// Gives the calling thread the affinity mask that the process was started with: a launcher,
// taskset, numactl or a cpuset set it. The other threads of teams stay where OpenMP puts them. It
// does nothing where the system refuses.
void restore_start_affinity() {
  if (start_mask_bytes > 0)
    syscall(SYS_sched_setaffinity, 0, static_cast<size_t>(start_mask_bytes), start_mask.data());
}

}  // namespace

int run_program(int argc, char** argv) {
  if (const auto code = run_launcher_watch(argc, argv)) return *code;
  flush_denormals();  // before there is any other thread
  restore_start_affinity();
  device::limit_teams(plan::team_processors());
  begin_process({argv + 1, argv + argc});
  const Terminal screen = terminal_of(STDERR_FILENO);
  if (screen.present)
    log::set_style({.color = screen.color, .columns = std::min(screen.columns, 100)});
  try {
    return end_process(run_command_line({argv + 1, argv + argc}));
  } catch (const std::bad_alloc&) {
    return fail(DeviceError(
        "not enough memory: an allocation failed; take smaller batches or fewer replicas a rank, "
        "or look at this job's limits (ulimit -a, cgroups)"));
  } catch (const std::exception& error) {
    return fail(error);
  }
}

}  // namespace tutti::cli
