#pragma once
// Ends an mpirun that the user has started. When the job should end, mpirun waits for the
// daemons of all its hosts, and without limit for a daemon on a host that does not answer.
// Sometimes it loses a rank that was killed at its birth, and also waits. So the first ranks of
// mpirun's own host, when they give up or are asked to end, leave a small process behind that kills
// an mpirun which still waits 15 seconds after such a rank has ended. (The process of `--ranks`
// watches its own mpirun, and acts sooner: supervise.h.)

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace tutti::cli {

/// Remembers which process started this one, and whether this is a rank that watches it. Call it in
/// main's first lines.
void remember_launcher(int local_rank);

/// Returns whether this process is the one that started this rank. May be called in a signal
/// handler.
bool is_launcher(pid_t process) noexcept;

/// Leaves the process behind, once, if this rank's launcher is an mpirun. May be called in a
/// handler and by any thread. The process ends when mpirun does.
void leave_launcher_watch() noexcept;

/// In the process that was left behind, which is this program once more, returns its exit code; in
/// any other process, nothing.
std::optional<int> run_launcher_watch(int count, char** words);

struct LauncherWatch {
  pid_t launcher = 0;
  uint64_t began = 0;  ///< as in process_state
  pid_t rank = 0;      ///< the parent of this process; while it lives, the job may end in order
  int looks = 0;       ///< number of checks, ten a second
};
/// Kills the launcher, with a line on its error stream, if it still exists after that many checks
/// following the rank's end. Checks do not count while it is stopped, or while nobody reads its
/// output. Returns when the process no longer exists.
void see_launcher_end(const LauncherWatch& watch);

}  // namespace tutti::cli
