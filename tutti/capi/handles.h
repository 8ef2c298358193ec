#pragma once
// The types behind the opaque handles of tutti_comm.h.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/run/block_exchange.h"

struct tutti_comm {
  explicit tutti_comm(std::unique_ptr<tutti::comm::Communicator> made,
                      std::shared_ptr<tutti::comm::Store> at = nullptr)
      : store(std::move(at)), failed(std::make_shared<std::atomic<bool>>(false)),
        communicator(std::move(made)) {}
  /// Wraps a communicator that was split from `whole`.
  tutti_comm(std::unique_ptr<tutti::comm::Communicator> made, const tutti_comm& whole)
      : store(whole.store), failed(whole.failed), communicator(std::move(made)) {}
  /// Where its ranks look each other up; null with MPI. Shared with communicators split from it:
  /// the store ends after the last of them. There is one per job, and one for each communicator
  /// made by tutti_comm_create.
  std::shared_ptr<tutti::comm::Store> store;
  /// Whether a call on it has ended with a CommError, after which its ranks no longer work
  /// together. Shared with communicators split from it; failures of others do not affect it.
  std::shared_ptr<std::atomic<bool>> failed;
  std::unique_ptr<tutti::comm::Communicator> communicator;
  /// Held by each call that uses the communicator itself, but not by calls that progress its plans:
  /// a thread may start and wait while another plans. Calls that plan for this rank alone do not
  /// hold it either, because they change nothing in it, and another thread may be waiting for all
  /// ranks with the lock held.
  std::mutex mutex;
  std::atomic<int> in_use = 0;  ///< plans and allocations that use it
};

struct tutti_comm_plan {
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  // Exactly one of the four is set.
  std::unique_ptr<tutti::comm::CollectiveOperation> collective = nullptr;
  std::unique_ptr<tutti::comm::MessageOperation> message = nullptr;
  std::unique_ptr<tutti::comm::BlockExchange> exchange = nullptr;
  std::unique_ptr<tutti::comm::Operation> access = nullptr;  ///< to memory of another rank
  std::function<void(std::span<std::byte>)> rebind_access = nullptr;
  std::atomic<int>* exposed_in_use = nullptr;  ///< count of the memory of `access`
  bool rebindable = false;
  bool bound = true;
  bool receives = false;  ///< for `message`: whether it receives
  size_t bytes = 0;       ///< length of the message or of the access to another rank's memory
  tutti::comm::Operation& operation() const {
    if (access) return *access;
    if (exchange) return *exchange;
    return collective ? static_cast<tutti::comm::Operation&>(*collective) : *message;
  }
};

namespace tutti::capi {

/// Returns the flag that a failing call sets; null for a null handle.
inline std::atomic<bool>* failure_of(const tutti_comm* comm) {
  return comm == nullptr ? nullptr : comm->failed.get();
}
inline std::atomic<bool>* failure_of(const tutti_comm_plan* plan) {
  return plan == nullptr ? nullptr : failure_of(plan->owner);
}

}  // namespace tutti::capi
