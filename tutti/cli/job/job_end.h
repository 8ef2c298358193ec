#pragma once
// Why a job of `tutti --ranks N` has ended: what its ranks have left in the table, what the process
// that started them has seen, and the exit status of MPI's launcher, which is believed last.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/job/lifetime.h"
#include "tutti/cli/job/rank_table.h"

namespace tutti {

struct JobEnd {
  /// Ranks that ended without having left a code and without having been told to end by the
  /// launcher, before another left an error that is not about missing them.
  std::vector<int> first_gone = {};
  pid_t launcher = 0;
  std::string program;           ///< the launcher's name
  int status = 0;                ///< the launcher's, as waitpid gives it
  bool launcher_killed = false;  ///< it did not end; that is said already
  std::string banners = {};      ///< the launcher's, for where nothing better is known
  bool trains = true;            ///< Patience's
  std::function<void(std::string_view)> print = write_error;
};

/// Prints it, if there is something to say, and returns the job's exit code.
int explain_end(const RankTable& table, const JobEnd& end);

/// Whether a rank that ended with this code has failed: not when it is done, has missed its target,
/// or was stopped in order.
bool is_failure(int code);

/// "rank 1/2 (process 4711), rank ..."
std::string rank_names(const RankTable& table, const std::vector<int>& ranks);

/// Whether the run was stopped in order, whatever became of its ranks and their launcher then.
bool has_stopped(const RankTable& table);
/// What is left of a run whose job has died, to append to a sentence; empty where none trains.
std::string what_stands(const RankTable& table, bool trains);
/// For jobs that a signal has ended before they had done anything.
std::string why_stopped(bool trains, int signal);

/// "signal 15 (Terminated)"; for messages.
std::string signal_text(int signal);

}  // namespace tutti
