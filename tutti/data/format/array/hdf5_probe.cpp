#include "tutti/data/format/array/hdf5_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace tutti::data {
namespace {

constexpr int64_t kChildMemory = int64_t{2} << 30;  // more than the parent has
constexpr size_t kMostReport = size_t{1} << 30;
constexpr uint8_t kComplete = 0x5a;  // the last byte of a report

/// Confines the child: no core files, none of the parent's handlers, a memory limit, and an end
/// with the parent. It ignores signals to stop: they are meant for the parent, even if a terminal
/// sends them to both.
void confine_child() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, SIG_DFL);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  rlimit memory{};
  const auto most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + kChildMemory);
  if (pages > 0 && ::getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur > most) {
    memory.rlim_cur = most;
    ::setrlimit(RLIMIT_AS, &memory);
  }
}

[[noreturn]] void be_child(int to, const std::function<std::vector<uint8_t>()>& work) {
  confine_child();
  int code = 1;
  try {
    std::vector<uint8_t> report = work();
    report.push_back(kComplete);
    size_t done = 0;
    while (done < report.size()) {
      const ssize_t wrote = ::write(to, report.data() + done, report.size() - done);
      if (wrote < 0 && errno != EINTR) break;
      if (wrote > 0) done += static_cast<size_t>(wrote);
    }
    code = done == report.size() ? 0 : 1;
  } catch (...) {  // out of memory: the parent sees an incomplete report
  }
  ::_exit(code);
}

/// The child for one file. The destructor ends it and waits for it.
class Child {
 public:
  Child(const std::string& file, const std::function<std::vector<uint8_t>()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw IoError(
          fmt::format("{}: cannot make a pipe to a child process: {}", file, file_error(errno)));
    from_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) be_child(ends[1], work);
    const int error = errno;
    ::close(ends[1]);
    if (pid_ < 0) {
      ::close(from_);
      throw IoError(fmt::format("{}: cannot start a child process to read its headers: {}", file,
                                file_error(error)));
    }
  }
  ~Child() {
    ::close(from_);
    if (!waited_) ::kill(pid_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Reads all that the child writes; false after `seconds`.
  bool read_all(int seconds, std::vector<uint8_t>& report) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    std::vector<uint8_t> piece(1 << 16);
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
      const int polled = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left));
      if (polled == 0) return false;
      if (polled < 0) continue;  // interrupted by a signal
      const ssize_t got = ::read(from_, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return true;
      if (report.size() + static_cast<size_t>(got) > kMostReport) return false;
      report.insert(report.end(), piece.begin(), piece.begin() + got);
    }
  }

  /// Describes how the child ended.
  std::string ending() {
    wait();
    if (WIFSIGNALED(status_))
      return fmt::format("by signal {} ({})", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
    return fmt::format("with code {}", WIFEXITED(status_) ? WEXITSTATUS(status_) : -1);
  }

 private:
  void wait() {
    if (waited_) return;
    waited_ = true;
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {}
  }

  int from_ = -1, status_ = 0;
  pid_t pid_ = -1;
  bool waited_ = false;
};

}  // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<uint8_t> bytes_of_child(const std::string& file, int seconds,
                                    const std::function<std::vector<uint8_t>()>& work) {
  std::unique_lock lock(hdf5_mutex());  // so that no HDF5 call is in progress during the fork
  Child child(file, work);
  lock.unlock();
  std::vector<uint8_t> report;
  if (!child.read_all(seconds, report))
    throw BadFile(
        "{}: its headers could not be read within {} seconds: the file is corrupted, or the file "
        "system hangs; fetch it again",
        file, seconds);
  if (report.empty() || report.back() != kComplete)
    throw BadFile(
        "{}: the HDF5 library ended {} while it read the headers: the file is corrupted; fetch it "
        "again",
        file, child.ending());
  report.pop_back();
  return report;
}

Hdf5Listing probe_hdf5(const std::filesystem::path& path, int64_t file_bytes, int seconds) {
  const std::string file = path.string();
  return hdf5_listing_from(
      bytes_of_child(file, seconds, [&] { return to_bytes(walk_hdf5(path, file_bytes)); }), file);
}

}  // namespace tutti::data
