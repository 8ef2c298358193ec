#pragma once
// MpiSession: MPI from initialisation to finalisation. The program's entry makes it before threads.

#include <chrono>
#include <memory>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/process_options.h"

namespace tutti::comm {

class MpiSession {
 public:
  enum class Threads { funneled, multiple };
  /// Seconds that ranks should have at least to reach the start of MPI, however short the other
  /// time-outs are: programs come from slow file systems, and MPI measures links.
  static constexpr double kStartSeconds = 60;
  /// Starts MPI. FUNNELED: only this thread may communicate. MULTIPLE: for progress threads; a
  /// library that gives less is used all the same, and Communicator::progress_refusal() reports it.
  /// Where the program has started MPI itself, at whatever thread level, that MPI is used, its
  /// error handlers are left alone, and the program ends it after this session. Throws CommError;
  /// also when MPI is over, because it cannot be started twice. `argc`, `argv`: main's, for MPI;
  /// null works with every MPI since 2.0. MPI starts when all ranks have come: if that takes longer
  /// than `timeout` seconds, this process prints a line and ends; 0: never.
  explicit MpiSession(Threads wanted = Threads::funneled, int* argc = nullptr,
                      char*** argv = nullptr, double timeout = 0);
  /// Finalises an MPI that it started; not while an exception passes, because MPI_Finalize would
  /// wait for ranks that may never come.
  ~MpiSession();
  /// Leaves MPI running when this session ends; to be called after a failure, for the same reason.
  /// A later session of this process may use MPI, and then finalises it.
  void leave_running() noexcept;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Makes a communicator over all ranks, independent of any other; to be destroyed before the
  /// session. Collective.
  std::unique_ptr<Communicator> communicator(const ProcessOptions& options = {});
  /// Does the same for the ranks of an MPI communicator of the program's own, given by its Fortran
  /// handle (MPI_Comm_c2f): an int in every MPI. Throws ConfigError for a handle that names no
  /// communicator of one group.
  std::unique_ptr<Communicator> communicator_of(int fortran_handle,
                                                const ProcessOptions& options = {});

  /// Returns whether MPI has been started, also by others, and not been finalised.
  static bool running();
  /// Returns the thread level of the running MPI: "single", "funneled", "serialized" or "multiple".
  static std::string thread_level();
  /// Ends all ranks with this exit code; for main(), after an exception has left the session's
  /// scope and its message is printed. Where ranks wait for each other, they get some seconds to
  /// print their messages. Returns if MPI is not running.
  static void end_job(int code);
  /// Waits, and meanwhile moves on an alarm that this process has raised or passed on.
  static void stay(std::chrono::milliseconds time);
  /// Returns whether a process that srun has started without PMIx can learn from this library which
  /// rank it is, or that it is alone. Open MPI before 5 can only where it was built for another
  /// PMI of Slurm; otherwise it ends such a process while it starts, with twenty lines. To be
  /// called before a session; takes a third of a second.
  static bool starts_without_pmix();
  /// Returns "Open MPI v4.1.4 ...". May be called without a session.
  static std::string library_version();

 private:
  std::string who_ = "this rank";
  double timeout_ = 60;
  bool started_ = false;  // by this session, or by one that left it running: this one then ends it
};

}  // namespace tutti::comm
