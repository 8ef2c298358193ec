#pragma once
// The process's part of the job, between tutti_comm_init and tutti_comm_finalize.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tutti/capi/handles.h"
#include "tutti/comm/bootstrap/tcp_store.h"
#include "tutti/comm/mpi/session.h"
#include "tutti/comm/tcp/store_communicator.h"

namespace tutti::capi {

/// Who is in a job without MPI.
struct StoreGroup {
  std::unique_ptr<comm::TcpStoreServer> server = nullptr;  ///< where this rank serves the store
  std::unique_ptr<comm::Store> store;
  std::string prefix;
  std::string secret = {};  ///< empty: rank 0 makes one
  int rank = 0, size = 1;
};

/// Thread-safe, but for its beginning and its end.
class Job {
 public:
  struct Options {
    comm::ProcessOptions process;
    int progress_threads = 0;
    std::string address = {};
  };
  Job(int* argc, char*** argv, const Options& options);
  Job(int fortran_handle, const Options& options);
  Job(StoreGroup group, const Options& options);

  bool has_mpi() const { return session_.has_value(); }

  /// Once, before anything is planned. Throws ConfigError where MPI does not allow threads.
  void start_progress(int threads);

  tutti_comm& world() { return world_; }
  /// Collective.
  tutti_comm* split(tutti_comm& comm, int color, int key);
  /// timeout: 0, the job's.
  tutti_comm* join(StoreGroup group, double timeout);
  void destroy(tutti_comm& part);
  void* allocate(tutti_comm& comm, size_t bytes);
  void free(void* data);
  /// Throws StateError when something is left.
  void check_empty() const;

 private:
  struct Memory {
    tutti_comm* owner;
    std::unique_ptr<comm::Window> window;
  };
  tutti_comm* keep(std::unique_ptr<tutti_comm> part);

  Options options_;
  std::optional<comm::MpiSession> session_;  // or the next two
  std::unique_ptr<comm::TcpStoreServer> server_;
  std::unique_ptr<comm::Store> store_;
  tutti_comm world_;
  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<comm::Progress> progress_;  // threads; shared with the communicators
  std::map<const tutti_comm*, std::unique_ptr<tutti_comm>> parts_;
  std::map<const void*, Memory> memory_;
};

/// Throws StateError when there is none.
Job& job();

}  // namespace tutti::capi
