#include "tutti/cli/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/cli/launcher_output.h"
#include "tutti/cli/lifetime.h"
#include "tutti/cli/signals.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kLookMs = 100;
// MPI's launchers let their ranks a second for their last words, and then clean up after them.
constexpr auto kKillRanks = seconds(1);
constexpr auto kKillLauncher = seconds(3);  // one that has just begun loses signals
constexpr size_t kVoices = 4;               // of ranks that say different things about the end

/// The letter of /proc/PID/stat: R, S, D, T ...; 0 when there is no such process, or only its
/// remains.
char state_of(pid_t process) {
  std::string line;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), line);
  const size_t name_end = line.rfind(')');  // the name may hold anything, a bracket as well
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return 0;
  const char state = line[name_end + 2];
  return state == 'Z' || state == 'X' ? '\0' : state;
}

bool is_error(int code) {
  return code != static_cast<int>(ExitCode::done) &&
         code != static_cast<int>(ExitCode::target_missed) &&
         code != static_cast<int>(ExitCode::requeue);
}

class Supervision {
 public:
  Supervision(const Supervised& job, const RankTable& table, const Patience& patience)
      : job_(job), table_(table), patience_(patience),
        gone_(static_cast<size_t>(table.ranks()), false),
        output_([](std::string_view text) { write_error(text); }) {}

  int run();

 private:
  void wait_a_moment();
  void read_output();
  void on_signal(int signal);
  void look_at_ranks();
  void look_for_stopped();
  void end_job(int code, std::string why);
  void press_on();
  void see_off_ranks();
  int conclude();
  int explain_deaths();
  int explain_stop();

  int launcher_code() const {
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  bool alive(int rank) const {
    return table_.row(rank).process != 0 && !gone_[static_cast<size_t>(rank)];
  }
  void kill_ranks() const {
    for (int rank = 0; rank < table_.ranks(); ++rank)
      if (alive(rank)) kill(table_.row(rank).process, SIGKILL);
  }
  std::string why(int signal) const {
    return patience_.trains ? stopped_early(signal)
                            : fmt::format("stopped by {}", signal_name(signal));
  }
  std::string name(int rank) const {
    return fmt::format("rank {}/{} (process {})", rank, table_.ranks(),
                       table_.row(rank).process.load());
  }
  std::string names(const std::vector<int>& ranks) const {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + name(rank);
    return text;
  }

  const Supervised& job_;
  const RankTable& table_;
  const Patience& patience_;
  std::vector<bool> gone_;
  std::vector<int> first_gone_;  // without having left a code, and before any other left an error
  LauncherOutput output_;
  std::string banners_;
  int signals_ = -1;
  bool output_open_ = true;
  bool over_ = false;  // the launcher has ended, with status_
  int status_ = 0;
  int interrupts_ = 0;
  std::optional<int> verdict_;  // this process ends the job, with this code
  Clock::time_point ending_since_{};
  bool ranks_killed_ = false, launcher_killed_ = false;
  std::optional<Clock::time_point> stopped_since_;
};

int Supervision::run() {
  const sigset_t set = supervised_signals();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  fcntl(job_.output, F_SETFL, O_NONBLOCK);
  auto next_look = Clock::now() + seconds(1);
  while (!over_) {
    wait_a_moment();
    read_output();
    signalfd_siginfo received{};
    while (read(signals_, &received, sizeof received) == sizeof received)
      if (received.ssi_signo != SIGCHLD) on_signal(static_cast<int>(received.ssi_signo));
    look_at_ranks();
    over_ = waitpid(job_.launcher, &status_, WNOHANG) != 0;
    if (const auto now = Clock::now(); now >= next_look) {
      next_look = now + seconds(1);
      look_for_stopped();
    }
    if (verdict_) press_on();
  }
  see_off_ranks();
  banners_ = output_.finish();
  close(signals_);
  return conclude();
}

void Supervision::wait_a_moment() {
  std::array<pollfd, 2> events = {{{signals_, POLLIN, 0}, {job_.output, POLLIN, 0}}};
  poll(events.data(), output_open_ ? 2 : 1, kLookMs);
}

void Supervision::read_output() {
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while (output_open_ && (count = read(job_.output, bytes.data(), bytes.size())) > 0)
    output_.take({bytes.data(), static_cast<size_t>(count)});
  if (count == 0) output_open_ = false;
}

void Supervision::on_signal(int signal) {
  if (verdict_) return;
  if (signal == SIGINT && ++interrupts_ > 1)
    return end_job(128 + SIGINT, "ended at once by a second interrupt; the last checkpoint stands");
  int stoppable = 0;
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankState state = table_.row(rank).state;
    if (state == RankState::over || state == RankState::ended) return;  // the end has come already
    if (state == RankState::stoppable) ++stoppable;
  }
  if (stoppable < table_.ranks())
    return end_job(patience_.trains ? static_cast<int>(ExitCode::requeue) : 128 + signal,
                   why(signal));
  for (int rank = 0; rank < table_.ranks(); ++rank)
    if (alive(rank)) kill(table_.row(rank).process, signal);
}

void Supervision::look_at_ranks() {
  std::vector<int> now_gone;
  bool error = false;
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankRow& row = table_.row(rank);
    const bool gone = alive(rank) && state_of(row.process) == 0;
    const bool ended = row.state == RankState::ended;  // stored before the process ends
    if (ended && is_error(row.code)) error = true;
    if (!gone) continue;
    gone_[static_cast<size_t>(rank)] = true;
    if (!ended) now_gone.push_back(rank);
  }
  if (first_gone_.empty() && !error && !verdict_) first_gone_ = now_gone;
}

void Supervision::look_for_stopped() {
  std::string stopped;
  if (state_of(job_.launcher) == 'T')
    stopped = fmt::format("{} (process {})", job_.program, job_.launcher);
  for (int rank = 0; rank < table_.ranks(); ++rank)
    if (alive(rank) && state_of(table_.row(rank).process) == 'T')
      stopped += (stopped.empty() ? "" : ", ") + name(rank);
  const auto now = Clock::now();
  if (stopped.empty() || verdict_) return stopped_since_.reset();
  if (!stopped_since_) stopped_since_ = now;
  // Ranks that run report what they wait for at their own time-out; they speak first.
  const std::chrono::duration<double> limit(patience_.seconds + 2);
  if (now - *stopped_since_ < limit) return;
  const std::string text = fmt::format(
      "stopped by a signal (state T) for more than {:g} s: {}; kill -CONT lets a "
      "stopped process go on",
      patience_.seconds, stopped);
  if (patience_.ends_job)
    return end_job(static_cast<int>(ExitCode::failure), text + "; the job ends");
  write_error("tutti: " + text + "; waiting goes on, as comm.on_timeout asks\n");
  stopped_since_ = now;
}

void Supervision::end_job(int code, std::string why) {
  write_error("tutti: " + why + "\n");
  verdict_ = code;
  ending_since_ = Clock::now();
  kill(job_.launcher, SIGTERM);
  kill(job_.launcher, SIGCONT);
}

void Supervision::press_on() {
  const auto since = Clock::now() - ending_since_;
  if (since > kKillRanks && !ranks_killed_) {
    kill_ranks();
    ranks_killed_ = true;
  }
  if (since > kKillLauncher && !launcher_killed_) {
    kill_ranks();  // that have begun meanwhile
    kill(job_.launcher, SIGKILL);
    launcher_killed_ = true;
  }
}

// Ranks end with their launcher (comm::end_with_launcher); this makes sure of it, and lets what
// they have printed arrive.
void Supervision::see_off_ranks() {
  const auto began = Clock::now();
  bool left = true;
  while ((left || output_open_) && Clock::now() - began < seconds(10)) {
    read_output();
    look_at_ranks();
    left = false;
    for (int rank = 0; rank < table_.ranks(); ++rank) left = left || alive(rank);
    if (left && Clock::now() - began > seconds(2)) kill_ranks();
    if (!left && Clock::now() - began > seconds(1)) break;  // a grandchild may hold the stream
    if (left || output_open_) {
      pollfd wait{job_.output, POLLIN, 0};
      poll(&wait, output_open_ ? 1 : 0, 20);
    }
  }
}

/// Prints the errors that ranks have left, each text once, and who died without a word. Returns the
/// exit code, 0 when there is nothing of that kind.
int Supervision::explain_deaths() {
  std::vector<int> failed;
  for (int rank = 0; rank < table_.ranks(); ++rank)
    if (table_.row(rank).state == RankState::ended && is_error(table_.row(rank).code))
      failed.push_back(rank);
  std::ranges::sort(failed, {}, [&](int rank) { return table_.row(rank).order.load(); });
  if (!first_gone_.empty() && !WIFSIGNALED(status_)) {
    const int code = launcher_code();
    const std::string how =
        code > 128 ? "killed by " + signal_text(code - 128) : std::string("gone without a word");
    write_error(fmt::format(
        "tutti: {}: {}{}; the job has ended. Its last checkpoint stands: "
        "--resume goes on from it\n",
        names(first_gone_), first_gone_.size() > 1 ? "the first of them was " : "", how));
  }
  std::vector<std::string> said;
  for (const int rank : failed) {
    const RankRow& row = table_.row(rank);
    const std::string text = row.message.data();
    if (text.empty() || std::ranges::find(said, text) != said.end()) continue;
    if (said.size() < kVoices)
      write_error("tutti: " + named(rank, table_.ranks(), row.code, text) + "\n");
    said.push_back(text);
  }
  if (said.size() > kVoices)
    write_error(fmt::format("tutti: {} more ranks reported errors\n", said.size() - kVoices));
  if (!failed.empty()) return table_.row(failed.front()).code;
  return first_gone_.empty() ? 0 : static_cast<int>(ExitCode::failure);
}

/// A signal to one rank, or to the launcher, that ended a rank while it started, before anything
/// else went wrong: what the others then say follows from it. Returns the exit code, else 0.
int Supervision::explain_stop() {
  if (!first_gone_.empty() || launcher_code() > 128) return 0;  // it ended the rest of a dead job
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankRow& row = table_.row(rank);
    if (row.state != RankState::ended || row.order != 1 || row.signal == 0) continue;
    write_error(fmt::format("tutti: rank {}/{}: {}\n", rank, table_.ranks(), why(row.signal)));
    return row.code;
  }
  return 0;
}

int Supervision::conclude() {
  if (verdict_) return *verdict_;
  if (const int code = explain_stop(); code != 0) return code;
  if (const int code = explain_deaths(); code != 0 && !WIFSIGNALED(status_)) return code;
  if (WIFSIGNALED(status_)) {
    write_error(
        fmt::format("tutti: {} (process {}) was killed by {}, and its ranks ended with it. "
                    "The last checkpoint stands: --resume goes on from it\n",
                    job_.program, job_.launcher, signal_text(WTERMSIG(status_))));
    return static_cast<int>(ExitCode::failure);
  }
  int begun = 0, ended = 0, code = 0;
  for (int rank = 0; rank < table_.ranks(); ++rank) {
    const RankRow& row = table_.row(rank);
    if (row.state != RankState::absent) ++begun;
    if (row.state != RankState::ended) continue;
    ++ended;
    code = std::max(code, row.code.load());
  }
  if (launcher_code() != 0) write_error(banners_);
  if (ended == table_.ranks()) return code;
  if (launcher_code() == 0 && begun == 0) return 0;  // no program of ours
  const std::string how = launcher_code() > 128
                              ? "a rank was killed by " + signal_text(launcher_code() - 128)
                              : fmt::format("it ended with exit code {}", launcher_code());
  write_error(begun == 0 ? fmt::format("tutti: {}: {} before a rank of Tutti had begun\n",
                                       job_.program, how)
                         : fmt::format("tutti: {}: {} when {} of {} ranks had begun\n",
                                       job_.program, how, begun, table_.ranks()));
  return launcher_code() == 0 || launcher_code() > 128 ? static_cast<int>(ExitCode::failure)
                                                       : launcher_code();
}

}  // namespace

sigset_t supervised_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  if (now.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

int supervise(const Supervised& job, const RankTable& table, const Patience& patience) {
  return Supervision(job, table, patience).run();
}

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

}  // namespace tutti
