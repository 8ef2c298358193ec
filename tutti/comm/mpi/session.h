#pragma once
// MpiSession: MPI from initialisation to finalisation, made by the program's entry, before threads that use it.

#include <memory>
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

struct MpiOptions {
  bool shared_memory = true;  ///< use shared memory when all ranks are on one node; false sends everything through MPI
  double timeout = 60;        ///< seconds; of every wait
};

class MpiSession {
 public:
  /// Starts MPI. FUNNELED: only this thread may communicate. MULTIPLE is what progress threads need; a library that gives less is used all the
  /// same, and Communicator::progress_refusal() says so. Where the program has started MPI itself, at whatever thread level, that one is used,
  /// its error handlers are left alone, and the program ends it after this session. Throws CommError when not even FUNNELED is to be had, and
  /// when MPI is over, because it cannot be started twice.
  enum class Threads { funneled, multiple };
  explicit MpiSession(Threads wanted = Threads::funneled);
  /// Finalises an MPI that it started; not while an exception passes, because MPI_Finalize would wait for ranks that may never come.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Collective. A communicator over all ranks, independent of any other; to be destroyed before the session.
  std::unique_ptr<Communicator> communicator(const MpiOptions& options = {});

  /// Whether MPI has been started, by whomever, and not been finalised.
  static bool running();
  /// Ends all ranks with this exit code; for main(), after an exception has left the session's scope. Returns if MPI is not running.
  static void end_job(int code);
  /// "Open MPI v4.1.4 ...". May be called without a session.
  static std::string library_version();

 private:
  bool started_ = false;  // by this session, which then ends it
};

}  // namespace tutti::comm
