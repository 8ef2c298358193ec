#include "tutti/cli/job/lifetime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/process_state.h"
#include "tutti/base/visible.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/job/launcher_watch.h"
#include "tutti/cli/job/rank_table.h"
#include "tutti/cli/job/signals.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/control/agree.h"
#include "tutti/comm/transport/mpi/session.h"

namespace tutti::cli {
namespace {

// Time for rank 0 to report an error for all ranks, and after it for the cause of an end that
// others have only noticed. The job's end, which follows, then comes before the others' messages.
constexpr std::chrono::seconds kFirstSpeaks{3}, kCauseSpeaks{4};

comm::Launcher launcher_or_single() {
  try {
    return read_launcher();
  } catch (const Error&) {
    return {};  // the verb reports it
  }
}

// The next file to be opened would get the number of a closed stream, and with it all its bytes.
// The replacement refuses them, so that end_process() sees it.
void fill_closed_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

// UCX, which libraries of MPI load, catches SIGHUP for its own debugging once it is loaded.
void give_back_hangup() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  if (now.sa_handler != SIG_IGN) std::signal(SIGHUP, SIG_DFL);
}

/// Threads of Python, and some launchers, start programs with signals blocked or ignored, without a
/// request: then nothing but SIGKILL would end this one. An ignored SIGHUP comes from nohup, and an
/// ignored SIGINT from a shell's background job. A signal that came while it was blocked is
/// delivered now, so handlers are installed before.
void hear_signals() {
  struct sigaction now {};
  sigaction(SIGTERM, nullptr, &now);
  if (now.sa_handler == SIG_IGN) std::signal(SIGTERM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// The usual limit of 1024 open files is for programs that call select(2); shards, ranks and their
/// connections need more. Some systems have a hard limit of a thousand millions, and programs that
/// are started from here may check each number below it.
void raise_file_limit() {
  constexpr rlim_t kMostFiles = 1 << 20;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min(files.rlim_max, kMostFiles);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &files);
}

std::string_view verb_of(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments)
    if (!word.starts_with("-")) return word;
  return "";
}

/// True if the rank has waited for others in vain. One of them may have an error to report.
bool has_waited(const std::exception& error) {
  return dynamic_cast<const CommError*>(&error) != nullptr;
}

/// True for an error that every rank finds if one does: then rank 0 reports it, and its end ends
/// the others.
bool is_everybodys(const std::exception& error) {
  return !has_waited(error) && dynamic_cast<const NumericError*>(&error) == nullptr;
}

ExitCode code_of(const std::exception& error) {
  const auto* own = dynamic_cast<const Error*>(&error);
  return own ? own->exit_code() : ExitCode::failure;
}

bool reader_has_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

/// Handles a standard output that has refused bytes. If its reader has closed the pipe, the process
/// ends without a message, as any filter does, even if it ignores SIGPIPE.
int output_failed(int error) {
  if (reader_has_gone() && launcher_or_single().name == "none") {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  const bool full = error == ENOSPC || error == EDQUOT;
  const std::string text =
      fmt::format("cannot write to the standard output: {}; {}send it elsewhere",
                  std::strerror(error), full ? "free some space or " : "");
  const int code = static_cast<int>(ExitCode::failure);
  if (own_row::end(code, text)) return 0;
  write_error("tutti: " + text + "\n");
  return code;
}

/// Reports the end of the whole job, which this rank causes: comm/'s last act.
void end_of_job(std::string_view report) noexcept {
  leave_launcher_watch();
  hurry_output();
  if (report.empty()) return;
  const int code = static_cast<int>(ExitCode::failure);
  const comm::Launcher launcher = launcher_or_single();
  const std::string text = named(launcher.rank, launcher.size, code, visible(report));
  if (!own_row::end(code, text, 0, true)) write_error("tutti: " + text + "\n");
}

}  // namespace

void begin_process(const std::vector<std::string>& arguments) {
  const comm::Launcher launcher = launcher_or_single();
  const bool is_rank = launcher.name != "none";
  if (is_rank) {
    comm::end_with_launcher();
    remember_launcher(launcher.local_rank);
    comm::set_last_act(end_of_job);
  }
  fill_closed_streams();
  make_output_visible();
  raise_file_limit();
  if (const char* table = std::getenv(kRankTableVariable); table != nullptr && is_rank)
    own_row::join(table, {launcher.rank, launcher.size, launcher.local_size});
  give_back_hangup();
  const std::string_view verb = verb_of(arguments);
  const bool trains = verb == "train";
  if (trains || is_rank) stop_while_starting({.trains = trains, .speaks = launcher.rank == 0});
  if (own_row::called_off()) std::raise(SIGTERM);
  // If the reader of the log has gone, the run continues.
  if (trains || verb == "study") std::signal(SIGPIPE, SIG_IGN);
  // A process that was started ignoring SIGCHLD would get no exit codes of its children.
  std::signal(SIGCHLD, SIG_DFL);
  // A write beyond the file-size limit then fails as on a full disk, with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  hear_signals();
}

int end_process(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && code == static_cast<int>(ExitCode::done)) return output_failed(errno);
  return own_row::end(code, "") ? 0 : code;
}

int fail(const std::exception& error) {
  const int code = static_cast<int>(code_of(error));
  const comm::Launcher launcher = launcher_or_single();
  if (launcher.size > 1) hurry_output();  // the other ranks wait for the end
  std::fflush(stdout);
  // Printing throws if the stream takes no more, without knowing which stream it was.
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system && std::ferror(stdout) != 0 && launcher.size == 1)
    return output_failed(system->code().value());
  const std::string what = visible(error.what());
  if (!own_row::end(code, what, 0, has_waited(error))) {
    if (has_waited(error) && launcher.size > 1)
      comm::MpiSession::stay(kCauseSpeaks);
    else if (is_everybodys(error) && launcher.rank > 0)
      comm::MpiSession::stay(kFirstSpeaks);
    write_error("tutti: " + named(launcher.rank, launcher.size, code, what) + "\n");
  }
  comm::MpiSession::end_job(code);
  return code;
}

std::string named(int rank, int ranks, int code, const std::string& text) {
  if (ranks <= 1 || code == static_cast<int>(ExitCode::usage)) return text;
  return comm::names_rank(text)
             ? text
             : fmt::format("rank {}/{} on {}: {}", rank, ranks, host_name(), text);
}

void write_error(std::string_view text) { write_output(STDERR_FILENO, text); }

std::string stopped_early(int signal) {
  return fmt::format(
      "stopped by {} before the first step: nothing has changed, the same command starts it again",
      signal_name(signal));
}

}  // namespace tutti::cli
