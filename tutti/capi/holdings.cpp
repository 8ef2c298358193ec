#include "tutti/capi/holdings.h"

#include <utility>

#include "tutti/capi/status.h"

namespace tutti::capi {

Holdings& holdings() {
  static Holdings& all = *std::make_unique<Holdings>().release();
  return all;
}

tutti_comm* Holdings::add(std::unique_ptr<tutti_comm> communicator) {
  tutti_comm* const handle = communicator.get();
  const std::lock_guard lock(mutex_);
  communicators_.emplace(handle, std::move(communicator));
  return handle;
}

tutti_comm* Holdings::split(tutti_comm& comm, int color, int key) {
  std::unique_ptr<tutti_comm> part;
  {
    const std::lock_guard lock(comm.mutex);
    part = std::make_unique<tutti_comm>(comm.communicator->split(color, key), comm);
  }
  return add(std::move(part));
}

void Holdings::destroy(tutti_comm& comm) {
  std::unique_ptr<tutti_comm> last;  // ended without the lock, because it may wait for other ranks
  const std::lock_guard lock(mutex_);
  const auto at = communicators_.find(&comm);
  if (at == communicators_.end()) throw ConfigError("no such communicator");
  if (comm.in_use > 0)
    throw StateError(fmt::format(
        "the communicator is in use: {} plan(s) and allocation(s) are left, to be given back first",
        comm.in_use.load()));
  last = std::move(at->second);
  communicators_.erase(at);
}

void* Holdings::allocate(tutti_comm& comm, size_t bytes) {
  std::unique_ptr<comm::Window> window;
  {
    const std::lock_guard lock(comm.mutex);
    // An allocation of 0 bytes would have nothing to free, and no way to read peers' memory.
    window = comm.communicator->allocate(bytes > 0 ? bytes : 1);
  }
  void* const data = window->data();
  const std::lock_guard lock(mutex_);
  memory_.emplace(data, Memory{&comm, std::move(window)});
  ++comm.in_use;
  return data;
}

void Holdings::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto at = memory_.find(data);
  if (at == memory_.end())
    throw ConfigError("this address is not from tutti_comm_alloc, or has been freed");
  tutti_comm& owner = *at->second.owner;
  memory_.erase(at);
  --owner.in_use;
}

void Holdings::check_empty(const tutti_comm& world) const {
  const std::lock_guard lock(mutex_);
  int left = world.in_use;
  size_t communicators = 0;
  for (const auto& [handle, communicator] : communicators_)
    if (communicator->store == world.store) {
      left += communicator->in_use;
      ++communicators;
    }
  if (left > 0 || communicators > 0)
    throw StateError(fmt::format(
        "{} plan(s) and allocation(s) and {} communicator(s) are left, to be given back "
        "first: tutti_comm_plan_destroy, tutti_comm_free, tutti_comm_memory_free, "
        "tutti_comm_destroy",
        left, communicators));
}

}  // namespace tutti::capi
