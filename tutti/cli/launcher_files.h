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
  std::filesystem::path session;  ///< TMPDIR/ompi.HOST.UID/pid.LAUNCHER
  std::string job;                ///< its number, as it stands in names: "1c3d0001"
};
/// From the variables of a rank that runs. Nothing where they are not those of Open MPI 3 or 4, or
/// name another launcher than this one.
std::optional<LauncherFiles> files_of_launcher(pid_t rank, pid_t launcher);
/// The same from the text of /proc/RANK/environ.
std::optional<LauncherFiles> parse_launcher_files(const std::string& environment, pid_t launcher);

/// When that launcher and its ranks have ended. Removes what belongs to this user and that job, in
/// `memory` files of shared memory; never throws.
void remove_launcher_files(const LauncherFiles& files,
                           const std::filesystem::path& memory = "/dev/shm") noexcept;

}  // namespace tutti
