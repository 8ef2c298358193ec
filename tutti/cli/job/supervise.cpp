#include "tutti/cli/job/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/cli/job/error_stream.h"
#include "tutti/cli/job/job_end.h"
#include "tutti/cli/job/launcher_files.h"
#include "tutti/cli/job/launcher_output.h"
#include "tutti/cli/job/rank_watch.h"
#include "tutti/cli/job/signals.h"
#include "tutti/cli/job/start_obstacles.h"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kLookMs = 100;
// MPI's launchers give their ranks a second for their last output, and then clean up after them.
constexpr auto kKillRanks = seconds(1);
constexpr auto kKillLauncher = seconds(3);  // a launcher that has just begun loses signals
constexpr auto kLastWork = seconds(5);      // for a rank that has trained and is asked to end
constexpr auto kSlowReader = seconds(5);    // for the last output of a job that was asked to end
constexpr int kLostStatus = 1 << 8;         // in waitpid's form: exit code 1, if there is no status
constexpr int kReads = 16;                  // reads of the job's output before signals are checked
// The number of checks, one a second, of a launcher whose ranks have failed and ended. It ends a
// second or two after them, unless it waits for a host that does not answer.
constexpr int kLauncherLooks = 10;

bool is_stopped(const std::optional<ProcessState>& process) {
  return process && process->stopped();
}

/// Nobody reads the ranks' output, and the launcher waits for that.
bool output_is_full() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 0;
}

class Supervision {
 public:
  Supervision(const Supervised& job, const RankTable& table, const Patience& patience)
      : job_(job), table_(table), patience_(patience), ranks_(table),
        output_([this](std::string_view text) { errors_.print(text); }) {}

  int run();

 private:
  void wait_a_moment(int ms);
  void read_output(int reads);
  void receive_signals();
  void on_signal(int signal);
  void suspend();
  void look_for_end();
  void look_for_files();
  void look_for_stopped();
  void look_at_start();
  void look_at_end();
  void look_at_launcher();
  void end_job(int code, const std::string& why);
  void press_on();
  void see_off_ranks();
  void read_rest();
  void wait_for_reader();
  int code_of_verdict() const;
  int explain(const std::string& banners);

  std::string launcher_name() const {
    return fmt::format("{} (process {})", job_.program, job_.launcher);
  }

  const Supervised& job_;
  const RankTable& table_;
  const Patience& patience_;
  RankWatch ranks_;
  ErrorStream errors_;
  LauncherOutput output_;
  int signals_ = -1;
  bool output_open_ = true;
  bool over_ = false;  // the launcher has ended, with status_
  int status_ = 0;
  Clock::time_point over_since_{};
  bool signalled_ = false;  // a signal has come
  int interrupts_ = 0;
  int asked_ = 0;  // the signal that came when ranks had trained already, since asked_since_
  Clock::time_point asked_since_{};
  std::optional<int> verdict_;  // this process ends the job, with this code
  bool did_without_ = false;    // because of stopped ranks; the others may do without them
  Clock::time_point ending_since_{};
  bool ranks_killed_ = false, launcher_killed_ = false;
  int start_looks_ = 0, launcher_looks_ = 0, stopped_looks_ = 0;
  bool looked_for_files_ = false;
  std::optional<LauncherFiles> files_;
};

int Supervision::run() {
  const sigset_t set = supervised_signals();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  fcntl(job_.output, F_SETFL, O_NONBLOCK);
  auto next_look = Clock::now() + seconds(1);
  while (!over_) {
    wait_a_moment(kLookMs);
    read_output(kReads);
    receive_signals();
    ranks_.look(verdict_.has_value());
    look_for_end();
    if (!looked_for_files_ && !over_ && ranks_.begun() > 0) look_for_files();
    if (const auto now = Clock::now(); now >= next_look && !over_) {
      next_look = now + seconds(1);
      look_for_stopped();
      look_at_start();
      look_at_end();
      look_at_launcher();
    }
    if (verdict_) press_on();
  }
  over_since_ = Clock::now();
  see_off_ranks();
  if (files_ && WIFSIGNALED(status_)) remove_launcher_files(*files_);
  read_rest();
  const std::string banners = output_.finish();
  const int code = verdict_ ? code_of_verdict() : explain(banners);
  wait_for_reader();
  close(signals_);
  return code;
}

// The other ranks saved the run if they could do without a stopped rank, or the launcher.
int Supervision::code_of_verdict() const {
  return did_without_ && has_stopped(table_) ? static_cast<int>(ExitCode::requeue) : *verdict_;
}

int Supervision::explain(const std::string& banners) {
  return explain_end(table_, {.first_gone = ranks_.first_gone(),
                              .launcher = job_.launcher,
                              .program = job_.program,
                              .status = status_,
                              .launcher_killed = launcher_killed_,
                              .banners = banners,
                              .trains = patience_.trains,
                              .print = [this](std::string_view text) { errors_.print(text); }});
}

// While nobody reads the job's output, it stays in the job's own pipe, and its writers wait there:
// this process must still receive signals.
void Supervision::wait_a_moment(int ms) {
  const bool full = errors_.full();
  std::array<pollfd, 3> events = {{{signals_, POLLIN, 0},
                                   {output_open_ && !full ? job_.output : -1, POLLIN, 0},
                                   {full ? errors_.file() : -1, POLLOUT, 0}}};
  poll(events.data(), events.size(), ms);
  errors_.push();
}

void Supervision::read_output(int reads) {
  std::array<char, 4096> bytes;
  ssize_t count = -1;
  while (output_open_ && !errors_.full() && reads-- > 0 &&
         (count = read(job_.output, bytes.data(), bytes.size())) > 0)
    output_.take({bytes.data(), static_cast<size_t>(count)});
  if (count == 0) output_open_ = false;
}

void Supervision::receive_signals() {
  signalfd_siginfo received{};
  while (read(signals_, &received, sizeof received) == sizeof received)
    if (received.ssi_signo == SIGTSTP)
      suspend();
    else if (received.ssi_signo != SIGCHLD)
      on_signal(static_cast<int>(received.ssi_signo));
}

// The terminal's Ctrl-Z reaches this process alone: the launcher has a group of its own, and under
// Open MPI so has each rank. This process stops by the signal's default action, which the system
// suppresses if no shell could continue the job.
void Supervision::suspend() {
  const auto begin = Clock::now();
  kill(-job_.launcher, SIGSTOP);
  ranks_.signal(SIGSTOP);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // it stops and continues here
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  ranks_.signal(SIGCONT);
  kill(-job_.launcher, SIGCONT);
  for (Clock::time_point* since : {&asked_since_, &ending_since_, &over_since_})
    *since += Clock::now() - begin;
}

void Supervision::look_for_end() {
  const pid_t found = waitpid(job_.launcher, &status_, WNOHANG);
  over_ = found != 0;
  if (found < 0) status_ = kLostStatus;
}

// A launcher that is killed leaves files that only its ranks can name: any of them can, or none.
void Supervision::look_for_files() {
  looked_for_files_ = true;
  for (const int rank : ranks_.alive())
    if (!files_) files_ = files_of_launcher(table_.row(rank).process, job_.launcher);
}

// Starting ranks end with the signal, and training ranks stop in order, all of them if one is
// asked: so ranks of other hosts need no signal. Whether the job has trained is checked after
// sending the signal: a rank that has begun to train by then takes it as a request.
void Supervision::on_signal(int signal) {
  signalled_ = true;
  if (verdict_ || over_) return;
  if (signal == SIGINT && ++interrupts_ > 1 && !has_stopped(table_)) {
    end_job(128 + SIGINT,
            "ended at once by a second interrupt; checkpoints that were written stand");
    return ranks_.signal(SIGKILL);
  }
  const bool has_trained = ranks_.count([](const RankRow& row) {
    return row.state == RankState::over || row.state == RankState::ended;
  }) > 0;
  ranks_.signal(signal);
  if (has_trained) {
    if (asked_ == 0) asked_since_ = Clock::now();
    asked_ = signal;
    return;
  }
  const int stopping = ranks_.count([](const RankRow& row) {
    return row.state == RankState::ended ? row.signal == 0 : row.state >= RankState::stoppable;
  });
  if (stopping < table_.ranks_here())
    end_job(patience_.trains ? static_cast<int>(ExitCode::requeue) : 128 + signal,
            why_stopped(patience_.trains, signal));
}

void Supervision::look_for_stopped() {
  std::string stopped = rank_names(table_, ranks_.stopped());
  if (is_stopped(process_state(job_.launcher)))
    stopped = launcher_name() + (stopped.empty() ? "" : ", ") + stopped;
  if (stopped.empty() || verdict_) {
    stopped_looks_ = 0;
    return;
  }
  // Running ranks end at their own time-out, which comes earlier. Checks are counted, one a second,
  // because the clock also runs while a scheduler has stopped this process together with all
  // others of the job.
  if (stopped_looks_++ < patience_.seconds + 2) return;
  const std::string text = fmt::format("stopped by a signal (state T) for more than {:g} s: {}",
                                       patience_.seconds, stopped);
  stopped_looks_ = 0;
  if (!patience_.ends_job)
    return errors_.print("tutti: " + text +
                         "; kill -CONT lets a stopped process go on; waiting goes on, as "
                         "comm.on_timeout asks\n");
  // If the launcher woke them, they would continue with peers that have ended meanwhile.
  ranks_.kill_stopped();
  did_without_ = true;
  end_job(static_cast<int>(ExitCode::failure),
          text + "; the job ends" + what_stands(table_, patience_.trains));
}

// Ranks that have begun watch the start of the others: MPI starts when all have come.
void Supervision::look_at_start() {
  if (verdict_ || ranks_.begun() > 0 || is_stopped(process_state(job_.launcher))) return;
  if (++start_looks_ < patience_.start_seconds) return;
  end_job(static_cast<int>(ExitCode::failure),
          fmt::format("{} has not brought a rank to its beginning within {} s{}; the job ends",
                      launcher_name(), patience_.start_seconds, start_obstacles()));
}

// A signal has no effect on ranks of a job that has trained. They end by themselves; a rank that
// does not must not keep the job from ending.
void Supervision::look_at_end() {
  if (asked_ == 0 || verdict_) return;
  const std::vector<int> left = ranks_.alive();
  const bool trains = std::ranges::any_of(left, [&](int rank) {
    return table_.row(rank).state != RankState::over && table_.row(rank).state != RankState::ended;
  });
  std::chrono::duration<double> limit = kLastWork;
  if (trains) limit = std::max(limit, std::chrono::duration<double>(patience_.seconds));
  if (Clock::now() - asked_since_ < limit) return;
  end_job(static_cast<int>(ExitCode::failure),
          fmt::format("the job was at its end, and {} has not ended within {:g} s of {}; it ends "
                      "now, and the last checkpoint stands",
                      left.empty() ? launcher_name() : rank_names(table_, left), limit.count(),
                      signal_name(asked_)));
}

void Supervision::look_at_launcher() {
  const bool failed = !ranks_.first_gone().empty() || ranks_.count([](const RankRow& row) {
    return row.state == RankState::ended && (is_failure(row.code) || row.signal != 0);
  }) > 0;
  if (verdict_ || launcher_killed_ || !failed || !ranks_.alive().empty()) return;
  if (is_stopped(process_state(job_.launcher)) || output_is_full() || errors_.full()) return;
  if (++launcher_looks_ < kLauncherLooks) return;
  const int here = table_.ranks_here();
  std::string reason;
  if (here < table_.ranks())
    reason = ": another host of the job does not answer";
  else if (ranks_.begun() < here)
    reason = fmt::format(": {} of {} ranks had begun", ranks_.begun(), here);
  errors_.print(fmt::format(
      "tutti: {} still waits {} s after its ranks on this host have ended, so it is killed{}\n",
      launcher_name(), kLauncherLooks, reason));
  kill(job_.launcher, SIGKILL);
  launcher_killed_ = true;
}

void Supervision::end_job(int code, const std::string& why) {
  table_.call_off();  // ranks that join from now on end by themselves
  ranks_.signal(SIGTERM);
  kill(job_.launcher, SIGTERM);
  kill(job_.launcher, SIGCONT);
  verdict_ = code;
  ending_since_ = Clock::now();
  errors_.print("tutti: " + why + "\n");
}

void Supervision::press_on() {
  const auto since = Clock::now() - ending_since_;
  if (since > kKillRanks && !ranks_killed_) {
    ranks_.signal(SIGKILL);
    ranks_killed_ = true;
  }
  if (since > kKillLauncher && !launcher_killed_) {
    ranks_.signal(SIGKILL);  // ranks that have begun meanwhile
    kill(job_.launcher, SIGKILL);
    launcher_killed_ = true;
  }
}

// Ranks end with their launcher (comm::end_with_launcher); this makes sure of it, and lets their
// output arrive.
void Supervision::see_off_ranks() {
  bool left = true;
  while ((left || output_open_) && Clock::now() - over_since_ < seconds(10)) {
    read_output(kReads);
    receive_signals();
    ranks_.look(verdict_.has_value());
    left = !ranks_.alive().empty();
    if (left && Clock::now() - over_since_ > seconds(2)) ranks_.signal(SIGKILL);
    if (!left && Clock::now() - over_since_ > seconds(1))
      break;  // a grandchild may hold the stream
    if (left || output_open_) wait_a_moment(20);
  }
}

/// Reads the present contents of the job's pipe. A grandchild may fill it again and again.
void Supervision::read_rest() {
  int bytes = 0;
  if (ioctl(job_.output, FIONREAD, &bytes) != 0) return;
  for (int reads = 0; reads * 4096 < bytes; ++reads) {
    wait_for_reader();
    read_output(1);
  }
  wait_for_reader();
}

// Waits without limit for the reader, as any program does, unless the job was asked to end.
void Supervision::wait_for_reader() {
  while (errors_.full()) {
    if ((signalled_ || verdict_) && Clock::now() - over_since_ > kSlowReader) return;
    wait_a_moment(kLookMs);
    receive_signals();
  }
}

}  // namespace

sigset_t supervised_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  for (const int signal : {SIGHUP, SIGTSTP}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

int supervise(const Supervised& job, const RankTable& table, const Patience& patience) {
  return Supervision(job, table, patience).run();
}

}  // namespace tutti::cli
