#pragma once
// The process of `tutti --ranks N` while its ranks run: it passes signals on, sees who dies or is
// stopped, and is the one voice of the job. The ranks report in the rank table; MPI's launcher is
// a child of this process and nobody believes its exit status where the table knows better.

#include <sys/types.h>

#include <string>

#include "tutti/cli/job/rank_table.h"

namespace tutti {

struct Patience {
  /// comm.timeout_s: when a process of the job stays stopped (SIGSTOP), nobody else might ever
  /// tell.
  double seconds = 60;
  bool ends_job = true;     ///< comm.on_timeout = abort; else it is said again and again
  bool trains = true;       ///< a stop before the first step is 75; of other work 128 + signal
  int start_seconds = 120;  ///< until the first rank has begun
};

struct Supervised {
  pid_t launcher = 0;              ///< mpirun, a child of this process
  int output = -1;                 ///< the reading end of its error stream
  std::string program = "mpirun";  ///< its name in messages
};

/// The signals that supervise() receives. The caller blocks them before it makes the child, so that
/// none is lost. SIGHUP and SIGTSTP are left out where they are ignored, as nohup asks.
sigset_t supervised_signals();

/// Until all processes of the job have ended; then says why it ended, if there is something to
/// say, and returns its exit code: that of the ranks, the same as one rank alone would have; 1 when
/// a rank or the launcher was killed. The first SIGINT, SIGTERM, SIGHUP, SIGUSR1 or SIGUSR2 goes to
/// the ranks, which stop in order; before they train it ends the job within seconds, with exit code
/// 75; when they have trained they end by themselves, and one that does not within five seconds is
/// killed, with 1. SIGTSTP stops launcher, ranks and this process, until SIGCONT. A second SIGINT
/// ends it at once, with 130, unless the run has saved itself by then. A launcher that waits for a
/// silent host when its ranks here have failed and ended is killed.
int supervise(const Supervised& job, const RankTable& table, const Patience& patience);

}  // namespace tutti
