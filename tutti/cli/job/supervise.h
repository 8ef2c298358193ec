#pragma once
// The process of `tutti --ranks N` while its ranks run: it passes signals on, notices which
// processes die or are stopped, and alone reports for the job. The ranks report in the rank table;
// MPI's launcher is a child of this process, and its exit status is ignored if the table has better
// information.

#include <sys/types.h>

#include <string>

#include "tutti/cli/job/rank_table.h"

namespace tutti::cli {

struct Patience {
  /// comm.timeout_s: if a process of the job stays stopped (SIGSTOP), perhaps no other process
  /// would report it.
  double seconds = 60;
  bool ends_job = true;     ///< comm.on_timeout = abort; else the warning is repeated
  bool trains = true;       ///< a stop before the first step gives 75; with other work 128 + signal
  int start_seconds = 120;  ///< until the first rank has begun
};

struct Supervised {
  pid_t launcher = 0;              ///< mpirun, a child of this process
  int output = -1;                 ///< the reading end of its error stream
  std::string program = "mpirun";  ///< its name in messages
};

/// Returns the signals that supervise() receives. The caller blocks them before it makes the child,
/// so that none is lost. SIGHUP and SIGTSTP are left out if they are ignored, as with nohup.
sigset_t supervised_signals();

/// Waits until all processes of the job have ended; then prints why it ended, if there is a reason
/// to report, and returns its exit code: the ranks' code, which is the same that one rank alone
/// would have; 1 when a rank or the launcher was killed. The first SIGINT, SIGTERM, SIGHUP, SIGUSR1
/// or SIGUSR2 goes to the ranks, which stop in order; before they train it ends the job within
/// seconds, with exit code 75; when they have trained they end by themselves, and a rank that does
/// not within five seconds is killed, with 1. SIGTSTP stops launcher, ranks and this process, until
/// SIGCONT. A second SIGINT ends the job at once, with 130, unless the run has been saved by then.
/// If the ranks here have failed and ended, a launcher that waits for a silent host is killed.
int supervise(const Supervised& job, const RankTable& table, const Patience& patience);

}  // namespace tutti::cli
