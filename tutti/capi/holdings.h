#pragma once
// The communicators and memory that the program has got from the library, without the job's own.

#include <map>
#include <memory>
#include <mutex>

#include "tutti/capi/handles.h"

namespace tutti::capi {

/// Thread-safe.
class Holdings {
 public:
  tutti_comm* add(std::unique_ptr<tutti_comm> communicator);
  /// Collective.
  tutti_comm* split(tutti_comm& comm, int color, int key);
  void destroy(tutti_comm& comm);
  void* allocate(tutti_comm& comm, size_t bytes);
  void free(void* data);
  /// Throws StateError if something that uses the job of `world` is left.
  void check_empty(const tutti_comm& world) const;

 private:
  struct Memory {
    tutti_comm* owner;
    std::unique_ptr<comm::Window> window;
  };
  mutable std::mutex mutex_;
  std::map<const tutti_comm*, std::unique_ptr<tutti_comm>> communicators_;
  std::map<const void*, Memory> memory_;
};

/// Returns this process's holdings. Like the job, they are never destroyed.
Holdings& holdings();

}  // namespace tutti::capi
