#pragma once
// Alarm: a rank that gives up waiting informs the others, so that each of them reports what it
// waits for before the job ends.
//
// A rank that raises or receives the alarm sends it to the ranks 1, 2, 4, 8 ... after it: after
// ceil(log2 P) hops all have it, also around a rank that is stopped or dead. Ranks look for it a
// few times a second while they wait; a rank that computes does not, and is ended without a report.

#include <mpi.h>

#include <optional>

namespace tutti::comm {

/// One for a communicator and those split from it: an alarm concerns no others. Not thread-safe:
/// used by the thread that waits.
class Alarm {
 public:
  /// Takes over `comm`, which is used for nothing else, and frees it unless the alarm was raised:
  /// then others may never come.
  explicit Alarm(MPI_Comm comm);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void raise();                 ///< acts once; later calls do nothing
  std::optional<int> raised();  ///< which other rank has raised it, if any. Never blocks
  bool is_raised() const { return by_ >= 0; }  ///< whether this rank knows of one
  /// Notes that rank `by` has raised the alarm in another way, which informs the others.
  void raised_elsewhere(int by);
  /// To be called after this rank's message is printed, before MPI_Abort: when the alarm was
  /// raised, waits until all ranks have printed their messages, or for a few seconds where one is
  /// stopped, dead or computes; otherwise returns at once.
  static void linger();
  /// Moves the messages of a raised alarm on. Never blocks.
  static void move_on();
  /// Notes that a message in flight was abandoned: its memory may be gone by the time of linger(),
  /// which then waits without MPI, because MPI would go on to read it. Any thread may call it.
  static void abandon_send();

 private:
  void tell_others(int by);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  int by_ = -1;
};

}  // namespace tutti::comm
