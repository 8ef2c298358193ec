#pragma once
// The reports of the ranks that `tutti --ranks N` started to the process that started them. They
// share a table in memory with one row for each rank. The starting process alone reports for the
// job and ends with its exit code, so that MPI's launcher, which can only guess from exit statuses,
// has nothing to add. Ranks of other hosts do not see the table, and have no row.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace tutti::cli {

enum class RankState : int {
  absent,     ///< its program has not begun
  starting,   ///< it has begun; a signal to stop ends it
  stoppable,  ///< it trains: a signal to stop makes it write a checkpoint and end
  over,       ///< it has trained; signals to stop have no effect any more
  ended       ///< it has left its exit code, and is about to exit
};

/// The state that a run can be resumed from, as far as a rank knows. stopped: it was asked to stop,
/// and its record and its last checkpoint are written accordingly.
enum class RunState : int { not_known, no_checkpoint, checkpoint, stopped };

struct RankRow {
  std::atomic<int> process{0};
  std::atomic<RankState> state{RankState::absent};
  std::atomic<int> code{0};           ///< the exit code that it would have without the job
  std::atomic<int> signal{0};         ///< the signal that ended it while it was starting; 0: none
  std::atomic<bool> waited{false};    ///< its error is a CommError: usually others did not answer
  std::atomic<int> order{0};          ///< 1 for the rank that left its code first, then 2 ...
  std::atomic<bool> sent_off{false};  ///< its launcher has ordered it to end: the cause is
                                      ///< elsewhere
  std::atomic<RunState> run{RunState::not_known};
  std::array<char, 4096> message = {};  ///< message of the error that ended it; ends with a zero
                                        ///< byte
};
static_assert(std::atomic<RankState>::is_always_lock_free);  // processes share them
static_assert(std::atomic<RunState>::is_always_lock_free);

/// The table, for the process that starts the ranks. Its memory has no name in the file system:
/// ranks find it through /proc, and it is released when all of them have ended.
class RankTable {
 public:
  /// Throws DeviceError where the kernel refuses.
  explicit RankTable(int ranks);
  ~RankTable();
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;

  /// Returns the value of kRankTableVariable for this table. It contains a random number that the
  /// table also holds: on another host the rest of it may name anything.
  std::string value() const;
  int ranks() const { return ranks_; }
  /// Returns how many ranks are on this host, as they report, or see this table; all until one has
  /// reported it.
  int ranks_here() const;
  const RankRow& row(int rank) const;
  /// Marks the job as ending before it trains: ranks that join from now on see this (called_off).
  void call_off() const;

 private:
  int ranks_;
  int file_ = -1;
  void* memory_ = nullptr;
};

/// The same table for a rank. All functions do nothing in a process that has no row, and all but
/// join() may be called in a signal handler.
namespace own_row {
struct Place {
  int rank = 0, ranks = 1;
  int ranks_here = -1;  ///< ranks on this host; -1 if the launcher does not tell
};
/// Takes the row of the place's rank in the table that `value` names. Returns false if that is no
/// table of such a job on this machine, or if another process has taken the row.
bool join(const std::string& value, const Place& place);
bool joined() noexcept;
/// Returns whether the job was called off before this rank joined.
bool called_off() noexcept;
void set_state(RankState state) noexcept;
void set_run(RunState run) noexcept;
/// Notes that this rank's launcher has ordered it to end.
void note_sent_off() noexcept;
/// Leaves the exit code; the first one stays, and when this returns it is stored, whichever thread
/// left it. Returns false when nobody will read it: then this process reports itself. `signal` and
/// `waited` as in the row.
bool end(int code, std::string_view message, int signal = 0, bool waited = false) noexcept;
}  // namespace own_row

}  // namespace tutti::cli
