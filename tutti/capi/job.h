#pragma once
// The process's part of the job, between tutti_comm_init and tutti_comm_finalize.

#include <memory>
#include <optional>
#include <string>

#include "tutti/capi/handles.h"
#include "tutti/comm/bootstrap/tcp_store.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti::capi {

/// Who is in a job without MPI.
struct StoreGroup {
  std::unique_ptr<comm::TcpStoreServer> server = nullptr;  ///< where this rank serves the store
  std::shared_ptr<comm::Store> store;  ///< shared by all communicators of the group
  std::string prefix;
  std::string secret = {};  ///< empty: rank 0 makes one
  int rank = 0, size = 1;
};

struct JobOptions {
  comm::ProcessOptions process;
  int progress_threads = 0;
};

class Job {
 public:
  using Options = JobOptions;
  Job(int* argc, char*** argv, const Options& options);
  Job(int fortran_handle, const Options& options);
  Job(StoreGroup group, const Options& options);

  bool has_mpi() const { return session_.has_value(); }
  /// Before ranks meet to leave: who comes back at once finds no store of this job.
  void admit_nobody();
  /// After a failure: the destructor waits for no other rank.
  void give_up();

  tutti_comm& world() { return world_; }

 private:
  std::optional<comm::MpiSession> session_;  // or the next one
  std::unique_ptr<comm::TcpStoreServer> server_;
  tutti_comm world_;
};

/// Throws StateError when there is none.
Job& job();

}  // namespace tutti::capi
