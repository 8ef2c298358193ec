#include "tutti/study/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/log.h"

extern char** environ;

namespace tutti::study {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

volatile sig_atomic_t stop_signal = 0;

/// While it lives, SIGINT and SIGTERM set stop_signal and interrupt poll instead of ending the
/// study.
class StopSignals {
 public:
  StopSignals() {
    stop_signal = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~StopSignals() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction old_int_ {
  }, old_term_{};
};

/// A child in a process group of its own (a terminal's Ctrl-C reaches it through us, once), output
/// and errors on one pipe.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw IoError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    output_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], 1);
    posix_spawn_file_actions_adddup2(&files, ends[1], 2);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const int failed = posix_spawnp(&pid_, argv[0], &files, &attributes, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (failed) {
      close(output_);
      throw IoError(fmt::format("cannot start {}: {}", command[0], std::strerror(failed)));
    }
  }
  ~Child() {
    if (!waited_) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int output() const { return output_; }
  void ask_to_stop(int signal) const { kill(pid_, signal); }
  void kill_group() const { kill(-pid_, SIGKILL); }
  /// True, with the wait status, once it has ended.
  bool ended(int& status) {
    waited_ = waited_ || waitpid(pid_, &status_, WNOHANG) == pid_;
    status = status_;
    return waited_;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1, status_ = 0;
  bool waited_ = false;
};

/// Splits a run's output into lines: to console.log, to the terminal, and the last few kept for the
/// message of a failure.
class Lines {
 public:
  Lines(const std::string& path, std::string label, bool show)
      : path_(path), file_(path), label_(std::move(label)), show_(show) {
    if (!file_) throw IoError(fmt::format("{}: cannot write", path));
  }
  void take(std::string_view bytes) {
    file_ << bytes << std::flush;
    if (!file_) throw IoError(fmt::format("{}: cannot write; is the disk full?", path_));
    for (const char c : bytes)
      if (c == '\n')
        line();
      else if (c != '\r')
        text_ += c;
  }
  std::string last() {
    if (!text_.empty()) line();
    std::string all;
    for (const std::string& text : last_) all += "\n    | " + text;
    return all;
  }

 private:
  void line() {
    if (show_) {
      std::fputs(fmt::format("{} | {}\n", label_, text_).c_str(), stderr);
      std::fflush(stderr);
    }
    last_.push_back(std::move(text_));
    if (last_.size() > 8) last_.pop_front();
    text_.clear();
  }
  std::string path_;
  std::ofstream file_;
  std::string label_, text_;
  bool show_;
  std::deque<std::string> last_;
};

struct Ended {
  int status = 0;
  bool timed_out = false, stopped = false;
};

/// Waits for the child while passing its output on, keeping the time limit and passing a stop
/// signal on.
Ended follow(Child& child, Lines& lines, const LaunchOptions& options) {
  Ended end;
  const auto start = Clock::now();
  Clock::time_point kill_at = Clock::time_point::max();
  const auto grace = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options.grace_seconds));
  bool open = true;
  std::array<char, 4096> bytes;
  for (bool alive = true; alive || open;) {
    pollfd wait{open ? child.output() : -1, POLLIN, 0};
    // After the end, what still comes is a grandchild's that outlived it: take what is there, do
    // not wait for more.
    const int ready = poll(&wait, 1, alive ? 100 : 0);
    if (ready > 0) {
      const ssize_t count = read(child.output(), bytes.data(), bytes.size());
      if (count > 0) lines.take({bytes.data(), static_cast<size_t>(count)});
      if (count == 0) open = false;
    } else if (!alive) {
      break;
    }
    alive = alive && !child.ended(end.status);
    const auto now = Clock::now();
    if (stop_signal && !end.stopped) {
      end.stopped = true;
      child.ask_to_stop(stop_signal);
      kill_at = now + grace;
    }
    const double seconds = std::chrono::duration<double>(now - start).count();
    if (options.run_limit_seconds > 0 && seconds > options.run_limit_seconds && !end.timed_out) {
      end.timed_out = true;
      child.ask_to_stop(SIGTERM);
      kill_at = std::min(kill_at, now + grace);
    }
    if (now > kill_at) child.kill_group();
  }
  return end;
}

std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int count_attempts(const std::string& directory) {
  int count = 0;
  while (fs::exists(fmt::format("{}.attempt-{}", directory, count + 1))) ++count;
  return count;
}

void set_aside(const std::string& directory) {
  if (!fs::exists(directory)) return;
  const std::string target = fmt::format("{}.attempt-{}", directory, count_attempts(directory) + 1);
  std::error_code failed;
  fs::rename(directory, target, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot rename to {}: {}", directory, target, failed.message()));
}

LaunchResult run_now(const PlannedRun& run, const LaunchOptions& options) {
  LaunchResult result{run};
  set_aside(run.directory);
  std::error_code failed;
  fs::create_directories(run.directory, failed);
  if (failed)
    throw IoError(
        fmt::format("{}: cannot create the directory: {}", run.directory, failed.message()));
  std::ofstream(run.directory + "/command.sh") << shell_line(run.command) << '\n';
  Lines lines(run.directory + "/console.log", fmt::format("n={} repeat {}", run.ranks, run.repeat),
              options.show_output);
  Child child(run.command);
  const Ended end = follow(child, lines, options);
  result.earlier_attempts = count_attempts(run.directory);
  const bool finished = is_finished(run.directory);
  if (end.stopped && !finished) {
    result.outcome = Outcome::stopped;
    result.reason = "the study was asked to stop";
  } else if (finished) {
    result.outcome = Outcome::finished;
  } else {
    result.outcome = Outcome::failed;
    const std::string limit =
        end.timed_out ? fmt::format("ran into the limit of {} s, ", options.run_limit_seconds) : "";
    result.reason = fmt::format("{}{}, its record does not end with done or target_missed{}", limit,
                                describe(end.status), lines.last());
  }
  return result;
}

}  // namespace

bool is_finished(const std::string& directory) {
  const std::string path = directory + "/" + kRecordFile;
  if (!fs::exists(path)) return false;
  try {
    const RunLog log = read_run(path);
    return log.stop &&
           (log.stop->status == RunStatus::done || log.stop->status == RunStatus::target_missed);
  } catch (const IoError& error) {
    log::warn("{}", error.what());
    return false;
  }
}

std::vector<LaunchResult> launch(const std::vector<PlannedRun>& runs,
                                 const LaunchOptions& options) {
  for (const PlannedRun& run : runs) {
    const std::string made_by = read_file(run.directory + "/command.sh"),
                      now = shell_line(run.command) + '\n';
    if (!options.fresh && is_finished(run.directory) && made_by != now)
      throw ConfigError(
          fmt::format("{} holds a finished run of another command:\n  {}  now:\n  {}use --fresh to "
                      "run again, or "
                      "another --output-dir",
                      run.directory, made_by, now));
  }
  const StopSignals signals;
  std::vector<LaunchResult> results;
  int number = 0;
  for (const PlannedRun& run : runs) {
    ++number;
    if (stop_signal) {
      results.push_back({run, Outcome::stopped, "not started: the study was asked to stop",
                         count_attempts(run.directory)});
      continue;
    }
    if (!options.fresh && is_finished(run.directory)) {
      log::info("run {}/{}: n={} repeat {}: finished before, kept", number, runs.size(), run.ranks,
                run.repeat);
      results.push_back({run, Outcome::kept, "", count_attempts(run.directory)});
      continue;
    }
    log::info("run {}/{}: n={} repeat {} seed {}: {}", number, runs.size(), run.ranks, run.repeat,
              run.seed, shell_line(run.command));
    results.push_back(run_now(run, options));
    if (results.back().outcome == Outcome::failed)
      log::error("run {}/{}: n={} repeat {} failed: {}", number, runs.size(), run.ranks, run.repeat,
                 results.back().reason);
  }
  return results;
}

}  // namespace tutti::study
