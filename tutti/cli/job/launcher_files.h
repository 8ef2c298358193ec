#pragma once
// The files that an mpirun of Open MPI leaves when it is killed: the folder of its session, and the
// memory that its ranks shared. Whoever waited for it removes them; otherwise nobody does.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace tutti {

/// Where they are, as the launcher has told a rank.
struct LauncherFiles {
  /// TMPDIR/ompi.HOST.UID/pid.LAUNCHER, since Open MPI 5 TMPDIR/prterun.HOST.LAUNCHER.UID
  std::filesystem::path session;
  /// Its number, as it stands in names: "1c3d0001". Open MPI 5 tells it nobody: empty.
  std::string job;
};
/// From the variables of a rank that runs. Nothing where they are not those of Open MPI 3 to 5, or
/// name another launcher than this one.
std::optional<LauncherFiles> files_of_launcher(pid_t rank, pid_t launcher);
/// The same from the text of /proc/RANK/environ.
std::optional<LauncherFiles> parse_launcher_files(const std::string& environment, pid_t launcher);

/// When that launcher and its ranks have ended. Removes what belongs to this user and that job, in
/// `memory` files of shared memory; never throws.
void remove_launcher_files(const LauncherFiles& files,
                           const std::filesystem::path& memory = "/dev/shm") noexcept;

/// Before a process becomes the launcher `process`: removes the folder of a session of this user
/// whose launcher had the same number on this host, and was killed. Open MPI 5 does not start where
/// it finds one. `temporary`: where nothing else is said, as Open MPI finds it. Never throws.
void remove_old_session(pid_t process, std::filesystem::path temporary = {}) noexcept;

}  // namespace tutti
