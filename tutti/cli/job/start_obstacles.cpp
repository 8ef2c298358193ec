#include "tutti/cli/job/start_obstacles.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tutti::cli {
namespace {

// An Open MPI job of two ranks needs some hundred KiB.
constexpr off_t kSessionBytes = 1 << 20;
// With 24, an mpirun of two ranks brings none of them to its start.
constexpr rlim_t kLauncherFiles = 128;

/// Returns Open MPI's folder, whose order of search differs from the standard library's.
std::filesystem::path session_folder() {
  for (const char* name : {"OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"})
    if (const char* value = std::getenv(name); value && *value) return value;
  return "/tmp";
}

bool some_interface_is_up() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return true;
  bool found = false;
  for (const ifaddrs* at = all; at != nullptr && !found; at = at->ifa_next)
    found = (at->ifa_flags & IFF_UP) != 0 && at->ifa_addr != nullptr &&
            (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
  freeifaddrs(all);
  return found;
}

}  // namespace

std::string obstacle_of_folder(const std::filesystem::path& folder) {
  const auto refusal = [&](const char* what, int error) {
    return fmt::format(
        "; MPI keeps files of the job in '{}', and {} ({}): set TMPDIR to a folder with room",
        folder.string(), what, std::strerror(error));
  };
  std::string trial = (folder / "tutti-start-XXXXXX").string();
  // MPI makes the folder itself if it does not exist.
  if (::mkdtemp(trial.data()) == nullptr)
    return errno == ENOENT ? "" : refusal("nothing can be written there", errno);
  const std::string name = trial + "/room";
  const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int error = file < 0 ? errno : ::posix_fallocate(file, 0, kSessionBytes);
  if (file >= 0) ::close(file);
  ::unlink(name.c_str());
  ::rmdir(trial.c_str());
  return error == ENOSPC || error == EDQUOT ? refusal("there is no room", error) : "";
}

std::string start_obstacles() {
  std::string found = obstacle_of_folder(session_folder());
  if (!some_interface_is_up())
    found +=
        "; no network interface is up, not even the loopback, and MPI needs one also within a "
        "machine: ip link set lo up";
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kLauncherFiles)
    found += fmt::format(
        "; a process may have no more than {} files open here (ulimit -n), and MPI's launcher "
        "needs more",
        files.rlim_cur);
  return found;
}

}  // namespace tutti::cli
