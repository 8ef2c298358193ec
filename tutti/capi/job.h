#pragma once
// This process's part of the job, between tutti_comm_init and tutti_comm_finalize.

#include <memory>
#include <optional>
#include <string>

#include "tutti/capi/handles.h"
#include "tutti/comm/bootstrap/tcp_store.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/comm/transport/tcp/store_communicator.h"

namespace tutti::capi {

/// The members of a job without MPI.
struct StoreGroup {
  std::unique_ptr<comm::TcpStoreServer> server = nullptr;  ///< on the rank that serves the store
  std::shared_ptr<comm::Store> store;  ///< shared by all communicators of the group
  std::string prefix;
  std::string secret = {};  ///< empty: rank 0 makes a secret
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
  /// Stops admitting to the store. Called before ranks meet to leave, so that a rank that returns
  /// at once finds no store of this job.
  void admit_nobody();
  /// Call this after a failure: the destructor then waits for no other rank.
  void give_up();

  tutti_comm& world() { return world_; }

 private:
  std::optional<comm::MpiSession> session_;  // or the next one
  std::unique_ptr<comm::TcpStoreServer> server_;
  tutti_comm world_;
};

/// Returns the job. Throws StateError if there is none.
Job& job();

}  // namespace tutti::capi
