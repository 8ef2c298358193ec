#pragma once
// What stands behind the opaque handles of tutti_comm.h.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/remote/remote_memory.h"
#include "tutti/comm/run/block_exchange.h"

struct tutti_comm {
  explicit tutti_comm(std::unique_ptr<tutti::comm::Communicator> made,
                      std::shared_ptr<tutti::comm::Store> at = nullptr)
      : store(std::move(at)), failed(std::make_shared<std::atomic<bool>>(false)),
        communicator(std::move(made)) {}
  /// Split from `whole`.
  tutti_comm(std::unique_ptr<tutti::comm::Communicator> made, const tutti_comm& whole)
      : store(whole.store), failed(whole.failed), communicator(std::move(made)) {}
  /// Where its ranks are looked up; null with MPI. Shared with those split from it: it ends after
  /// the last of them. One a job, and one of each communicator of its own.
  std::shared_ptr<tutti::comm::Store> store;
  /// Whether a call on it has ended with a CommError: its ranks no longer go together. One for it
  /// and those split from it; what happens to others does not concern it.
  std::shared_ptr<std::atomic<bool>> failed;
  std::unique_ptr<tutti::comm::Communicator> communicator;
  /// Held by each call that uses the communicator itself, and not by those that move its plans: a
  /// thread may start and wait while another plans. Nor by those that plan for this rank alone,
  /// which change nothing of it: another thread may be waiting for all ranks with the lock held.
  std::mutex mutex;
  std::atomic<int> in_use = 0;  ///< plans and allocations that stand on it
};

struct tutti_comm_memory {
  explicit tutti_comm_memory(tutti_comm* comm) : owner(comm) {}
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  std::unique_ptr<tutti::comm::RemoteMemory> memory;
  std::unique_ptr<tutti::comm::RemoteMemory::Hold> hold;
  /// Held while an access is planned: the memory keeps a lane for each rank that is asked.
  std::mutex mutex;
  std::atomic<int> in_use = 0;  ///< plans that stand on it
};

struct tutti_comm_plan {
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  // One of the four.
  std::unique_ptr<tutti::comm::CollectiveOperation> collective = nullptr;
  std::unique_ptr<tutti::comm::MessageOperation> message = nullptr;
  std::unique_ptr<tutti::comm::BlockExchange> exchange = nullptr;
  std::unique_ptr<tutti::comm::RemoteAccess> remote = nullptr;
  tutti_comm_memory* exposed = nullptr;  ///< of `remote`; as owner
  bool rebindable = false;
  bool bound = true;
  bool receives = false;  ///< the message
  size_t bytes = 0;       ///< of the message, or of what is done in another rank's memory
  tutti::comm::Operation& operation() const {
    if (remote) return *remote;
    if (exchange) return *exchange;
    return collective ? static_cast<tutti::comm::Operation&>(*collective) : *message;
  }
};

namespace tutti::capi {

/// What a failure of a call on it sets; null for a null handle.
inline std::atomic<bool>* failure_of(const tutti_comm* comm) {
  return comm == nullptr ? nullptr : comm->failed.get();
}
inline std::atomic<bool>* failure_of(const tutti_comm_memory* memory) {
  return memory == nullptr ? nullptr : failure_of(memory->owner);
}
inline std::atomic<bool>* failure_of(const tutti_comm_plan* plan) {
  return plan == nullptr ? nullptr : failure_of(plan->owner);
}

}  // namespace tutti::capi
