#pragma once
// What the ranks that `tutti --ranks N` started tell the process that started them. They share a
// table in memory with one row for each rank. The starting process alone speaks for the job and
// ends with its exit code, so that MPI's launcher, which can only guess from exit statuses, has
// nothing to add. Ranks of other hosts do not see the table, and have no row.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace tutti {

enum class RankState : int {
  absent,     ///< its program has not begun
  starting,   ///< it has begun; a signal to stop ends it
  stoppable,  ///< it trains: a signal to stop makes it write a checkpoint and end
  over,       ///< it has trained; signals to stop mean nothing any more
  ended       ///< it has left its exit code, and is about to exit
};

/// What a run would go on from, as far as a rank knows. stopped: it was asked to stop, and its
/// record and its last checkpoint say so.
enum class RunState : int { not_known, no_checkpoint, checkpoint, stopped };

struct RankRow {
  std::atomic<int> process{0};
  std::atomic<RankState> state{RankState::absent};
  std::atomic<int> code{0};           ///< the exit code that it would have if it were alone
  std::atomic<int> signal{0};         ///< that ended it while it was starting; 0: none
  std::atomic<bool> waited{false};    ///< its error is a CommError: mostly, others did not answer
  std::atomic<int> order{0};          ///< 1 for the rank that left its code first, then 2 ...
  std::atomic<bool> sent_off{false};  ///< its launcher has told it to end: the cause is elsewhere
  std::atomic<RunState> run{RunState::not_known};
  std::array<char, 4096> message = {};  ///< of the error that ended it; ends with a zero byte
};
static_assert(std::atomic<RankState>::is_always_lock_free);  // processes share them
static_assert(std::atomic<RunState>::is_always_lock_free);

/// The table, as the process that starts the ranks has it. Its memory has no name in the file
/// system: ranks find it through /proc, and it is gone when all of them are.
class RankTable {
 public:
  /// Throws DeviceError where the kernel refuses.
  explicit RankTable(int ranks);
  ~RankTable();
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;

  /// The value of kRankTableVariable for this table. It holds a random number that the table holds
  /// too: on another host the rest of it may name anything.
  std::string value() const;
  int ranks() const { return ranks_; }
  /// How many of them are on this host, as they say, or see this table; all until one has said so.
  int ranks_here() const;
  const RankRow& row(int rank) const;
  /// The job is to end before it trains: ranks that join from now on find that out (called_off).
  void call_off() const;

 private:
  int ranks_;
  int file_ = -1;
  void* memory_ = nullptr;
};

/// The same as a rank has it. All of it does nothing in a process that has no row, and all but
/// join() may be called in a signal handler.
namespace own_row {
struct Place {
  int rank = 0, ranks = 1;
  int ranks_here = -1;  ///< on this host; -1 where the launcher does not say
};
/// Takes the row of the place's rank in the table that `value` names. False where that is none of
/// such a job on this machine, or where another process has taken the row.
bool join(const std::string& value, const Place& place);
bool joined() noexcept;
/// Whether the job was called off before this rank joined.
bool called_off() noexcept;
void set_state(RankState state) noexcept;
void set_run(RunState run) noexcept;
/// Its launcher has told this rank to end.
void note_sent_off() noexcept;
/// Leaves the exit code; what comes first stays, and when this returns it is there, whichever
/// thread left it. False when nobody will read it: then this process speaks for itself. `signal`
/// and `waited` as in the row.
bool end(int code, std::string_view message, int signal = 0, bool waited = false) noexcept;
}  // namespace own_row

}  // namespace tutti
