#include "tutti/cli/job/job_end.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/cli/job/lifetime.h"
#include "tutti/cli/job/signals.h"
#include "tutti/cli/job/start_obstacles.h"

namespace tutti::cli {
namespace {

constexpr size_t kVoices = 4;  // ranks with different errors that are printed
constexpr int kFailure = static_cast<int>(ExitCode::failure);

/// Returns the exit code that a shell would give.
int code_of_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Returns the most advanced state that any rank reports.
RunState run_of(const RankTable& table) {
  RunState run = RunState::not_known;
  for (int rank = 0; rank < table.ranks(); ++rank) run = std::max(run, table.row(rank).run.load());
  return run;
}

bool asks_to_stop(int signal) {
  constexpr std::array kWishes = {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2};
  return std::ranges::find(kWishes, signal) != kWishes.end();
}

/// Explains an end by a signal to one rank, or to the launcher, while a rank started, before
/// anything else went wrong; the others' errors are consequences. Returns the exit code, else 0.
int explain_stop(const RankTable& table, const JobEnd& end) {
  // A launcher that ends the rest of a dead job sends signals, too. The job was stopped only if the
  // death itself came from a signal that asks to stop, before main's first line.
  const int killed_by = code_of_status(end.status) - 128;
  if (!end.first_gone.empty() || (killed_by > 0 && !asks_to_stop(killed_by))) return 0;
  for (int rank = 0; rank < table.ranks(); ++rank) {
    const RankRow& row = table.row(rank);
    if (row.state != RankState::ended || row.order != 1 || row.signal == 0) continue;
    end.print(fmt::format("tutti: rank {}/{}: {}\n", rank, table.ranks(),
                          why_stopped(end.trains, row.signal)));
    return row.code;
  }
  return 0;
}

/// Returns obstacles for jobs whose ranks may have ended in MPI's start.
std::string obstacles_of(const RankTable& table) {
  return run_of(table) == RunState::not_known ? start_obstacles() : "";
}

void explain_gone(const RankTable& table, const JobEnd& end) {
  if (end.first_gone.empty() || WIFSIGNALED(end.status)) return;
  const int code = code_of_status(end.status);
  const std::string how = code > 128 && code < 128 + NSIG ? "killed by " + signal_text(code - 128)
                                                          : std::string("gone without a word");
  end.print(fmt::format("tutti: {}: {}{}; the job has ended{}{}\n",
                        rank_names(table, end.first_gone),
                        end.first_gone.size() > 1 ? "the first of them was " : "", how,
                        what_stands(table, end.trains), obstacles_of(table)));
}

/// Leaves out ranks that have only waited for others in vain, if it is known why one of those
/// ended: explain_gone() has named it, or it has left an error of its own.
void leave_out_echoes(const RankTable& table, const JobEnd& end, std::vector<int>& failed) {
  const auto waited = [&](int rank) { return table.row(rank).waited.load(); };
  const bool named_gone = !end.first_gone.empty() && !WIFSIGNALED(end.status);
  if (named_gone || !std::ranges::all_of(failed, waited)) std::erase_if(failed, waited);
}

/// Prints the errors that ranks have left, each text once, the earliest first. Returns the earliest
/// one's code, 0 when there is none.
int explain_failures(const RankTable& table, const JobEnd& end) {
  std::vector<int> failed;
  for (int rank = 0; rank < table.ranks(); ++rank)
    if (table.row(rank).state == RankState::ended && is_failure(table.row(rank).code))
      failed.push_back(rank);
  if (failed.empty()) return 0;
  std::ranges::sort(failed, {}, [&](int rank) { return table.row(rank).order.load(); });
  leave_out_echoes(table, end, failed);
  if (failed.empty()) return kFailure;
  std::vector<std::string> sentences, lines;
  for (const int rank : failed) {
    const RankRow& row = table.row(rank);
    const std::string text = row.message.data();
    if (text.empty() || std::ranges::find(sentences, text) != sentences.end()) continue;
    sentences.push_back(text);
    // An error that one rank has sent to the others (comm::decide) is printed once, too.
    const std::string line = named(rank, table.ranks(), row.code, text);
    if (std::ranges::find(lines, line) != lines.end()) continue;
    if (lines.size() < kVoices) end.print("tutti: " + line + "\n");
    lines.push_back(line);
  }
  if (lines.size() > kVoices)
    end.print(fmt::format("tutti: {} more ranks reported errors\n", lines.size() - kVoices));
  return table.row(failed.front()).code;
}

struct Counts {
  int begun = 0, ended = 0, sent_off = 0;
  int code = 0;  // the largest code of ended ranks
};

Counts count_ranks(const RankTable& table) {
  Counts counts;
  for (int rank = 0; rank < table.ranks(); ++rank) {
    const RankRow& row = table.row(rank);
    if (row.state != RankState::absent) ++counts.begun;
    if (row.sent_off && row.state != RankState::ended) ++counts.sent_off;
    if (row.state != RankState::ended) continue;
    ++counts.ended;
    counts.code = std::max(counts.code, row.code.load());
  }
  return counts;
}

/// Handles jobs in which no rank of this host has failed: all have ended well, or the launcher
/// alone knows the reason.
int believe_launcher(const RankTable& table, const JobEnd& end) {
  const Counts ranks = count_ranks(table);
  const int code = code_of_status(end.status);
  const bool elsewhere = table.ranks_here() < table.ranks();
  if (ranks.ended == table.ranks_here() && (!elsewhere || !is_failure(code)))
    return elsewhere ? std::max(ranks.code, code) : ranks.code;
  if (code != 0) end.print(end.banners);
  if (code == 0 && ranks.begun == 0) return 0;  // not a program of ours
  const std::string how = code > 128 && code < 128 + NSIG
                              ? "a rank was killed by " + signal_text(code - 128)
                              : fmt::format("it ended with exit code {}", code);
  std::string where = " before a rank of Tutti had begun";
  if (elsewhere && ranks.begun == table.ranks_here())
    where = ", but no rank of this host has failed: the cause is on another host";
  else if (ranks.sent_off > 0)
    where =
        " after it had ended its ranks: something has told it to" + what_stands(table, end.trains);
  else if (ranks.begun > 0)
    where = fmt::format(" when {} of {} ranks had begun", ranks.begun, table.ranks_here());
  end.print(fmt::format("tutti: {}: {}{}{}\n", end.program, how, where, obstacles_of(table)));
  if (has_stopped(table)) return static_cast<int>(ExitCode::requeue);
  return code == 0 || code > 128 ? kFailure : code;
}

}  // namespace

int explain_end(const RankTable& table, const JobEnd& end) {
  if (const int code = explain_stop(table, end); code != 0) return code;
  explain_gone(table, end);
  const int code = explain_failures(table, end);
  if (WIFSIGNALED(end.status) && !end.launcher_killed) {
    end.print(fmt::format(
        "tutti: {} (process {}) was killed by {}, and its ranks ended with it{}\n", end.program,
        end.launcher, signal_text(WTERMSIG(end.status)), what_stands(table, end.trains)));
    return kFailure;
  }
  if (code != 0) return code;
  if (!end.first_gone.empty() || end.launcher_killed) return kFailure;
  return believe_launcher(table, end);
}

bool is_failure(int code) {
  return code != static_cast<int>(ExitCode::done) &&
         code != static_cast<int>(ExitCode::target_missed) &&
         code != static_cast<int>(ExitCode::requeue);
}

std::string rank_names(const RankTable& table, const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks)
    text += fmt::format("{}rank {}/{} (process {})", text.empty() ? "" : ", ", rank, table.ranks(),
                        table.row(rank).process.load());
  return text;
}

bool has_stopped(const RankTable& table) { return run_of(table) == RunState::stopped; }

std::string what_stands(const RankTable& table, bool trains) {
  if (!trains) return "";
  const RunState run = run_of(table);
  if (run >= RunState::checkpoint) return ". The last checkpoint stands: --resume goes on from it";
  return run == RunState::no_checkpoint
             ? ". There is no checkpoint yet: --resume begins at the first step"
             : ". It had not begun to train";
}

std::string why_stopped(bool trains, int signal) {
  return trains ? stopped_early(signal) : fmt::format("stopped by {}", signal_name(signal));
}

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, strsignal(signal));
}

}  // namespace tutti::cli
