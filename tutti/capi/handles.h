#pragma once
// What stands behind the opaque handles of tutti_comm.h.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "tutti/capi/tutti_comm.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/communicator.h"

struct tutti_comm {
  explicit tutti_comm(std::unique_ptr<tutti::comm::Communicator> made,
                      std::shared_ptr<tutti::comm::Store> its_store = nullptr)
      : store(std::move(its_store)), communicator(std::move(made)) {}
  /// Where the group has one of its own. Shared with those split from it, in any order of their
  /// ends.
  std::shared_ptr<tutti::comm::Store> store;
  std::unique_ptr<tutti::comm::Communicator> communicator;
  /// Held by each call that uses the communicator itself, and not by those that move its plans: a
  /// thread may start and wait while another plans.
  std::mutex mutex;
  std::atomic<int> in_use = 0;  ///< plans and allocations that stand on it
};

struct tutti_comm_plan {
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  // One of the two.
  std::unique_ptr<tutti::comm::CollectiveOperation> collective = nullptr;
  std::unique_ptr<tutti::comm::MessageOperation> message = nullptr;
  bool rebindable = false;
  bool bound = true;
  bool receives = false;  ///< the message
  size_t bytes = 0;       ///< of the message
  tutti::comm::Operation& operation() const {
    return collective ? static_cast<tutti::comm::Operation&>(*collective) : *message;
  }
};
