#pragma once
// The process's part of the job, between tutti_comm_init and tutti_comm_finalize.

#include <map>
#include <memory>

#include "tutti/capi/handles.h"
#include "tutti/comm/mpi/session.h"

namespace tutti::capi {

class Job {
 public:
  struct Options {
    comm::ProcessOptions mpi;
    int progress_threads = 0;
  };
  Job(int* argc, char*** argv, const Options& options);
  Job(int fortran_handle, const Options& options);

  /// Once, before anything is planned. Throws ConfigError where MPI does not allow threads.
  void start_progress(int threads);

  tutti_comm& world() { return world_; }
  /// Collective.
  tutti_comm* split(tutti_comm& comm, int color, int key);
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
  comm::MpiSession session_;
  tutti_comm world_;
  std::map<const tutti_comm*, std::unique_ptr<tutti_comm>> parts_;
  std::map<const void*, Memory> memory_;
};

/// Throws StateError when there is none.
Job& job();

}  // namespace tutti::capi
