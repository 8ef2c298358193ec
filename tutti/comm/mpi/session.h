#pragma once
// MpiSession: MPI from initialisation to finalisation. One per process, made by the program's entry, before threads that use it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

/// Which ranks are on one node: those under one running kernel (they can share memory), or of these only those that also have the same host
/// name. The second makes nodes of containers, or of network namespaces, of one machine.
enum class Nodes : uint8_t { kernel, hostname };
/// "auto" (kernel) or "hostname". Throws ConfigError.
Nodes nodes_named(std::string_view name);

struct MpiOptions {
  bool shared_memory = true;  ///< use shared memory when all ranks are on one node; false sends everything through MPI
  double timeout = 60;        ///< seconds; of every wait
  Nodes nodes = Nodes::kernel;
};

class MpiSession {
 public:
  /// MPI_Init_thread. FUNNELED: only this thread may communicate. MULTIPLE is what progress threads need; a library that gives less is used
  /// all the same, and Communicator::progress_refusal() says so. Throws CommError when not even FUNNELED is to be had.
  enum class Threads { funneled, multiple };
  explicit MpiSession(Threads wanted = Threads::funneled);
  /// Finalises MPI; not while an exception passes, because MPI_Finalize would wait for ranks that may never come.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Collective. A communicator over all ranks, independent of any other; to be destroyed before the session.
  std::unique_ptr<Communicator> communicator(const MpiOptions& options = {});

  /// Ends all ranks with this exit code; for main(), after an exception has left the session's scope and its message is printed. Where ranks
  /// wait for each other, they get a second or two to print theirs. Returns if MPI is not running.
  static void end_job(int code);
  /// "Open MPI v4.1.4 ...". May be called without a session.
  static std::string library_version();

 private:
  std::string who_ = "this rank";
  double timeout_ = 60;
};

}  // namespace tutti::comm
