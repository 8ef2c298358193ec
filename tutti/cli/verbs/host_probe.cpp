#include "tutti/cli/verbs/host_probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/comm/transport/shm/segment.h"

namespace tutti::cli {
namespace {

std::string read_text(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool anonymous_memory_works() {
  try {
    const auto segment = comm::SharedSegment::create(4096);
    return comm::SharedSegment::open(getpid(), segment.descriptor(), 4096, segment.nonce(),
                                     comm::PeerAccess::write)
        .has_value();
  } catch (const Error&) {
    return false;
  }
}

std::string why_copies_are_refused() {
  char from = 1, to = 0;
  const iovec local{&to, 1}, remote{&from, 1};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1)
    return fmt::format("process_vm_readv: {}", std::strerror(errno));
  const std::string scope = read_text("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty() && scope[0] > '0')
    return fmt::format("kernel.yama.ptrace_scope is {}", scope.substr(0, scope.find('\n')));
  return "";
}

}  // namespace

SharedMemory probe_shared_memory() {
  SharedMemory found;
  found.anonymous = anonymous_memory_works();
  found.copy_refused = why_copies_are_refused();
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) == 0) {
    found.bytes = static_cast<int64_t>(info.f_blocks * info.f_frsize);
    found.free_bytes = static_cast<int64_t>(info.f_bavail * info.f_frsize);
  }
  return found;
}

int64_t locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<int64_t>(limit.rlim_cur);
}

bool has_infiniband() {
  std::error_code ignored;
  return std::filesystem::exists("/sys/class/infiniband", ignored) &&
         !std::filesystem::is_empty("/sys/class/infiniband", ignored);
}

Load parse_load(const std::string& text) {
  Load load;
  std::sscanf(text.c_str(), "%lf %*f %*f %d/", &load.average, &load.runnable);
  return load;
}

Load probe_load() {
  Load least = parse_load(read_text("/proc/loadavg"));
  for (int look = 0; look < 5; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    least.runnable = std::min(least.runnable, parse_load(read_text("/proc/loadavg")).runnable);
  }
  return least;
}

std::vector<std::string> mpi_launchers(std::string_view path) {
  std::vector<std::string> found;
  std::set<std::filesystem::path> seen;
  std::istringstream folders{std::string(path)};
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* name : {"mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich", "orterun",
                             "prterun", "mpiexec.hydra"}) {
      const std::filesystem::path program = std::filesystem::path(folder) / name;
      std::error_code failed;
      const auto real = std::filesystem::canonical(program, failed);
      if (!failed && access(program.c_str(), X_OK) == 0 && seen.insert(real).second)
        found.push_back(real == program ? real.string()
                                        : fmt::format("{} ({})", program.string(), real.string()));
    }
  return found;
}

std::string mpi_family(std::string_view name) {
  const auto has = [&](const char* word) { return name.find(word) != std::string_view::npos; };
  if (has("Open MPI") || has("openmpi") || has("orterun") || has("prterun")) return "Open MPI";
  if (has("MPICH") || has("mpich") || has("hydra") || has("MVAPICH") || has("Intel(R) MPI"))
    return "MPICH";
  return "";
}

MpiProbe probe_mpi() {
  constexpr int kPatienceMs = 20'000;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {"", std::strerror(errno)};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    try {
      const comm::MpiSession session(comm::MpiSession::Threads::multiple);
      const std::string level = comm::MpiSession::thread_level();
      _exit(write(ends[1], level.data(), level.size()) < 0);  // without MPI_Finalize: nobody waits
    } catch (const std::exception&) {
      _exit(1);
    }
  }
  close(ends[1]);
  std::array<char, 64> text{};
  pollfd wait{ends[0], POLLIN, 0};
  const ssize_t length =
      child > 0 && poll(&wait, 1, kPatienceMs) > 0 ? read(ends[0], text.data(), text.size()) : 0;
  close(ends[0]);
  int status = 0;
  if (child > 0) {
    if (length <= 0) kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  if (length > 0) return {std::string(text.data(), static_cast<size_t>(length)), ""};
  return {"", WIFEXITED(status) ? fmt::format("it ends with exit code {}", WEXITSTATUS(status))
                                : fmt::format("no answer, ended by signal {}", WTERMSIG(status))};
}

}  // namespace tutti::cli
