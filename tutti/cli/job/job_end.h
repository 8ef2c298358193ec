#pragma once
// Explains why a job of `tutti --ranks N` has ended, from the table that its ranks have filled,
// from the observations of the process that started them, and, with the least weight, from the exit
// status of MPI's launcher.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/job/lifetime.h"
#include "tutti/cli/job/rank_table.h"

namespace tutti::cli {

struct JobEnd {
  /// Ranks that ended without leaving a code and without an order from the launcher, before another
  /// left an error that is not about missing them.
  std::vector<int> first_gone = {};
  pid_t launcher = 0;
  std::string program;           ///< the launcher's name
  int status = 0;                ///< the launcher's status, as waitpid gives it
  bool launcher_killed = false;  ///< it did not end; this has been printed already
  std::string banners = {};      ///< the launcher's banners, used if there is no better explanation
  bool trains = true;            ///< copied from Patience
  std::function<void(std::string_view)> print = write_error;
};

/// Prints the explanation, if there is one, and returns the job's exit code.
int explain_end(const RankTable& table, const JobEnd& end);

/// Returns whether a rank that ended with this code has failed: not when it is done, has missed its
/// target, or was stopped in order.
bool is_failure(int code);

/// Returns "rank 1/2 (process 4711), rank ...".
std::string rank_names(const RankTable& table, const std::vector<int>& ranks);

/// Returns whether the run was stopped in order, whatever happened later to its ranks and their
/// launcher.
bool has_stopped(const RankTable& table);
/// Describes what remains of a run whose job has died, to append to a sentence; empty where none
/// trains.
std::string what_stands(const RankTable& table, bool trains);
/// Returns the reason for jobs that a signal ended before they had done anything.
std::string why_stopped(bool trains, int signal);

/// Returns "signal 15 (Terminated)", for messages.
std::string signal_text(int signal);

}  // namespace tutti::cli
