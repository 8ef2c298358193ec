#pragma once
// Alarm: how a rank that gives up waiting tells the others, so that each of them says what it waits
// for before the job ends.
//
// A rank that raises the alarm, or hears it, tells the ranks 1, 2, 4, 8 ... after it: after
// ceil(log2 P) hops all have heard, also around a rank that is stopped or dead. Ranks listen a few
// times a second while they wait; one that computes does not, and is ended without a word.

#include <mpi.h>

#include <optional>

namespace tutti::comm {

/// One for a communicator and those split from it: what it has heard concerns no others. Not
/// thread-safe: used by the thread that waits.
class Alarm {
 public:
  /// Takes over `comm`, which is used for nothing else, and frees it unless the alarm was raised:
  /// then others may never come.
  explicit Alarm(MPI_Comm comm);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void raise();                            ///< once; later calls do nothing
  std::optional<int> raised();             ///< by whom, if another rank has. Never blocks
  bool heard() const { return by_ >= 0; }  ///< whether this rank knows of one; it does not listen
  /// Rank `by` has raised the alarm on another way than this one, which tells the others.
  void raised_elsewhere(int by);
  /// To be called with this rank's message printed, before MPI_Abort: when the alarm was raised,
  /// waits until all ranks have printed theirs, or for a few seconds where one is stopped, dead or
  /// computes; otherwise returns at once.
  static void linger();
  /// Lets the messages of an alarm that was raised go on their way. Never blocks.
  static void move_on();
  /// A message that was being sent is left to itself, and its memory may be gone by the time that
  /// linger() is called: it then waits without MPI, which would go on to read from it.
  /// May be called by any thread.
  static void abandon_send();

 private:
  void tell_others(int by);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  int by_ = -1;
};

}  // namespace tutti::comm
