#pragma once
// The files that an mpirun of Open MPI leaves when it is killed: its session's folder, and the
// memory that its ranks shared. The process that waited for mpirun removes them; nothing else does.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace tutti::cli {

/// The places of the files, as the launcher gave them to a rank.
struct LauncherFiles {
  /// TMPDIR/ompi.HOST.UID/pid.LAUNCHER, since Open MPI 5 TMPDIR/prterun.HOST.LAUNCHER.UID
  std::filesystem::path session;
  /// Its number, as it appears in names: "1c3d0001". Empty for Open MPI 5, which does not publish
  /// it.
  std::string job;
};
/// Reads them from the variables of a running rank. Returns nothing if these are not variables of
/// Open MPI 3 to 5, or name another launcher than this one.
std::optional<LauncherFiles> files_of_launcher(pid_t rank, pid_t launcher);
/// Reads the same from the text of /proc/RANK/environ.
std::optional<LauncherFiles> parse_launcher_files(const std::string& environment, pid_t launcher);

/// Removes the files of this user and that job, after the launcher and its ranks have ended.
/// `memory` holds files of shared memory. Never throws.
void remove_launcher_files(const LauncherFiles& files,
                           const std::filesystem::path& memory = "/dev/shm") noexcept;

/// Removes, before a process becomes the launcher `process`, the folder of a session of this
/// user whose launcher had the same number on this host, and was killed. Open MPI 5 does not start
/// if it finds one. `temporary`: the folder for temporary files; empty: as Open MPI finds it. Never
/// throws.
void remove_old_session(pid_t process, std::filesystem::path temporary = {}) noexcept;

}  // namespace tutti::cli
