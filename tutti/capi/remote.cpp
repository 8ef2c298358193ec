// Memory that ranks expose, and accesses to other ranks' memory.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "tutti/capi/arguments.h"
#include "tutti/capi/handles.h"
#include "tutti/capi/remote/remote_memory.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;

struct tutti_comm_memory {
  explicit tutti_comm_memory(tutti_comm* comm) : owner(comm) {}
  tutti_comm* owner;  ///< not owned; lives longer, because it is in use
  std::unique_ptr<capi::RemoteMemory> memory;
  std::unique_ptr<capi::RemoteMemory::Hold> hold;
  /// Held while an access is planned, because the memory keeps a lane for each target rank.
  std::mutex mutex;
  std::atomic<int> in_use = 0;  ///< plans that use it
};

namespace {

std::atomic<bool>* failure_of(const tutti_comm_memory* memory) {
  return memory == nullptr ? nullptr : capi::failure_of(memory->owner);
}

using Make = std::unique_ptr<capi::RemoteAccess> (capi::RemoteMemory::*)(const capi::RemoteSpec&);

// A PlanError here is the caller's mistake. Any other CommError means that this rank has failed to
// serve the others.
std::unique_ptr<capi::RemoteAccess> access_of(tutti_comm_memory& exposed, Make make,
                                              const capi::RemoteSpec& spec) {
  const std::lock_guard lock(exposed.mutex);
  return ((*exposed.memory).*make)(spec);
}

void make_access(tutti_comm_memory* memory, Make make, capi::RemoteSpec spec,
                 const tutti_comm_plan_options* given_options, tutti_comm_plan** plan) {
  tutti_comm_memory& exposed = capi::given(memory, "memory");
  tutti_comm_plan*& result = capi::given(plan, "plan");
  const auto options =
      capi::options_of_one_rank(given_options, "what one rank does in another's memory");
  spec.name = capi::text_of(options.name);
  spec.priority = options.priority;
  auto made = std::make_unique<tutti_comm_plan>(tutti_comm_plan{.owner = exposed.owner});
  made->rebindable = options.rebindable != 0;
  made->bound = !made->rebindable;
  made->bytes = spec.data.size();
  if (made->bound && made->bytes > 0) capi::given(spec.data.data(), "data");
  auto access = access_of(exposed, make, spec);
  made->rebind_access = [&access = *access](auto data) { access.rebind(data); };
  made->access = std::move(access);
  made->exposed_in_use = &exposed.in_use;
  ++exposed.in_use;
  ++exposed.owner->in_use;
  result = made.release();
}

void access_once(tutti_comm_memory* memory, Make make, const capi::RemoteSpec& spec) {
  tutti_comm_memory& exposed = capi::given(memory, "memory");
  if (!spec.data.empty()) capi::given(spec.data.data(), "data");
  const auto access = access_of(exposed, make, spec);
  access->run();
}

std::span<std::byte> elements_at(const void* data, size_t count, comm::Element element) {
  const size_t size = comm::size_of(element);
  if (count > PTRDIFF_MAX / size)
    throw ::ConfigError(fmt::format("{} elements are more than any memory holds", count));
  return capi::bytes_at(data, count * size);
}

// A range of a rank's memory, from byte `offset` on.
struct There {
  int rank;
  size_t offset;
};

capi::RemoteSpec move_of(There there, const void* data, size_t bytes, int atomic = 0) {
  return {.rank = there.rank,
          .offset = there.offset,
          .data = capi::bytes_at(data, bytes),
          .atomic = atomic != 0};
}

capi::RemoteSpec sum_of(There there, const void* data, size_t count, int type, int op) {
  capi::RemoteSpec spec{.rank = there.rank, .offset = there.offset};
  spec.element = capi::element_of(type);
  spec.op = capi::op_of(op);
  spec.data = elements_at(data, count, spec.element);
  return spec;
}

}  // namespace

int tutti_comm_expose(tutti_comm* comm, size_t bytes, void** data, tutti_comm_memory** memory) {
  return capi::guarded(capi::failure_of(comm), [&] {
    tutti_comm& owner = capi::given(comm, "comm");
    tutti_comm_memory*& result = capi::given(memory, "memory");
    auto made = std::make_unique<tutti_comm_memory>(&owner);
    {
      const std::lock_guard lock(owner.mutex);
      made->memory = std::make_unique<capi::RemoteMemory>(*owner.communicator, bytes);
    }
    if (data != nullptr) *data = made->memory->data().data();
    ++owner.in_use;
    result = made.release();
  });
}

int tutti_comm_memory_free(tutti_comm_memory* memory) {
  return capi::guarded([&] {
    if (memory == nullptr) return;
    if (memory->in_use > 0)
      throw capi::StateError(
          fmt::format("the memory is in use: {} plan(s) are left, to be destroyed first",
                      memory->in_use.load()));
    tutti_comm& owner = *memory->owner;
    {
      const std::lock_guard lock(owner.mutex);
      const std::unique_ptr<tutti_comm_memory> last(memory);
    }
    --owner.in_use;
  });
}

int tutti_comm_plan_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                        size_t offset, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan) {
  return capi::guarded(failure_of(memory), [&] {
    make_access(memory, &capi::RemoteMemory::plan_put, move_of({rank, offset}, data, bytes),
                options, plan);
  });
}

int tutti_comm_plan_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank,
                        size_t offset, int atomic, const tutti_comm_plan_options* options,
                        tutti_comm_plan** plan) {
  return capi::guarded(failure_of(memory), [&] {
    make_access(memory, &capi::RemoteMemory::plan_get, move_of({rank, offset}, data, bytes, atomic),
                options, plan);
  });
}

int tutti_comm_plan_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                               int op, int rank, size_t offset,
                               const tutti_comm_plan_options* options, tutti_comm_plan** plan) {
  return capi::guarded(failure_of(memory), [&] {
    make_access(memory, &capi::RemoteMemory::plan_accumulate,
                sum_of({rank, offset}, data, count, type, op), options, plan);
  });
}

int tutti_comm_plan_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                          int rank, size_t offset, const tutti_comm_plan_options* options,
                          tutti_comm_plan** plan) {
  return capi::guarded(failure_of(memory), [&] {
    make_access(memory, &capi::RemoteMemory::plan_fetch,
                sum_of({rank, offset}, data, count, type, op), options, plan);
  });
}

int tutti_comm_put(tutti_comm_memory* memory, const void* data, size_t bytes, int rank,
                   size_t offset) {
  return capi::guarded(failure_of(memory), [&] {
    access_once(memory, &capi::RemoteMemory::plan_put, move_of({rank, offset}, data, bytes));
  });
}

int tutti_comm_get(tutti_comm_memory* memory, void* data, size_t bytes, int rank, size_t offset,
                   int atomic) {
  return capi::guarded(failure_of(memory), [&] {
    access_once(memory, &capi::RemoteMemory::plan_get,
                move_of({rank, offset}, data, bytes, atomic));
  });
}

int tutti_comm_accumulate(tutti_comm_memory* memory, const void* data, size_t count, int type,
                          int op, int rank, size_t offset) {
  return capi::guarded(failure_of(memory), [&] {
    access_once(memory, &capi::RemoteMemory::plan_accumulate,
                sum_of({rank, offset}, data, count, type, op));
  });
}

int tutti_comm_fetch(tutti_comm_memory* memory, void* data, size_t count, int type, int op,
                     int rank, size_t offset) {
  return capi::guarded(failure_of(memory), [&] {
    access_once(memory, &capi::RemoteMemory::plan_fetch,
                sum_of({rank, offset}, data, count, type, op));
  });
}

int tutti_comm_memory_accumulates(tutti_comm_memory* memory, size_t* count) {
  return capi::guarded([&] {
    capi::given(count, "count") =
        static_cast<size_t>(capi::given(memory, "memory").memory->accumulates());
  });
}

int tutti_comm_memory_wait(tutti_comm_memory* memory, size_t count, const int* ranks,
                           size_t number) {
  return capi::guarded(failure_of(memory), [&] {
    capi::RemoteMemory& exposed = *capi::given(memory, "memory").memory;
    if (number > 0) capi::given(ranks, "ranks");
    const std::span<const int> from(ranks, number);
    const int size = memory->owner->communicator->size();
    for (const int rank : from)
      if (rank < 0 || rank >= size)
        throw ::ConfigError(fmt::format("there is no rank {} among {}", rank, size));
    exposed.wait_for_accumulates(count, from);
  });
}

int tutti_comm_memory_hold(tutti_comm_memory* memory) {
  return capi::guarded([&] {
    tutti_comm_memory& exposed = capi::given(memory, "memory");
    if (exposed.hold) throw capi::StateError("the memory is held already");
    exposed.hold.reset(new capi::RemoteMemory::Hold(exposed.memory->hold()));
  });
}

int tutti_comm_memory_release(tutti_comm_memory* memory) {
  return capi::guarded([&] {
    tutti_comm_memory& exposed = capi::given(memory, "memory");
    if (!exposed.hold) throw capi::StateError("the memory is not held");
    exposed.hold.reset();
  });
}
