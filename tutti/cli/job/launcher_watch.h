#pragma once
// The end of an mpirun that the user has started. When the job is to end, mpirun waits for the
// daemons of all its hosts, and for one on a host that has stopped to answer it waits without end.
// Now and then it loses a rank that was killed at its birth, and waits as well. So the first ranks
// of mpirun's own host, when they give up or are told to end, leave a small process behind that
// kills an mpirun which still waits 15 seconds after such a rank has ended. (The process of
// `--ranks` sees to its own mpirun, sooner: supervise.h.)

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace tutti {

/// To be called in main's first lines: keeps in mind who started this process, and whether this is
/// a rank that watches it.
void remember_launcher(int local_rank);

/// Whether this process is the one that started this rank. May be called in a handler of signals.
bool is_launcher(pid_t process) noexcept;

/// Leaves the process behind, once, where this rank's launcher is an mpirun. May be called in a
/// handler and by any thread. The process ends when mpirun does.
void leave_launcher_watch() noexcept;

/// In the process that was left behind, which is this program once more: its exit code. Nothing in
/// any other.
std::optional<int> run_launcher_watch(int count, char** words);

struct LauncherWatch {
  pid_t launcher = 0;
  uint64_t began = 0;  ///< process_state's
  pid_t rank = 0;      ///< the parent of this process; while it is there, the job may end in order
  int looks = 0;       ///< ten a second
};
/// Kills the launcher, with a line on its error stream, when it has been there for so many looks
/// after the rank's end. Looks do not count while it is stopped, or while nobody reads what it
/// prints. Returns when there is no such process any more.
void see_launcher_end(const LauncherWatch& watch);

}  // namespace tutti
