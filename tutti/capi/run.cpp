// Operations on a finished plan.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>

#include "tutti/capi/handles.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;

namespace {

const comm::CollectiveOperation& collective_of(const tutti_comm_plan* plan) {
  if (!capi::given(plan, "plan").collective)
    throw ::ConfigError(
        "a message has no algorithm and no schedule, nor has an exchange, nor what one rank does "
        "in "
        "another's memory");
  return *plan->collective;
}

/// `what` says what has to happen first.
void refuse_in_flight(const comm::Operation& operation, const char* what) {
  if (operation.failed())
    throw capi::StateError(
        fmt::format("'{}' has failed, and is only to be destroyed", operation.name()));
  if (operation.in_flight()) throw capi::StateError(fmt::format("'{}' {}", operation.name(), what));
}

}  // namespace

int tutti_comm_start(tutti_comm_plan* plan) {
  return capi::guarded(capi::failure_of(plan), [&] {
    comm::Operation& operation = capi::given(plan, "plan").operation();
    if (!plan->bound)
      throw capi::StateError(
          fmt::format("'{}' has no buffers yet: tutti_comm_plan_rebind", operation.name()));
    refuse_in_flight(operation, "was started and is still in flight: test or wait first");
    operation.start();
  });
}

int tutti_comm_test(tutti_comm_plan* plan, int* done) {
  return capi::guarded(capi::failure_of(plan), [&] {
    capi::given(done, "done") = capi::given(plan, "plan").operation().test() ? 1 : 0;
  });
}

int tutti_comm_wait(tutti_comm_plan* plan) {
  return capi::guarded(capi::failure_of(plan),
                       [&] { capi::given(plan, "plan").operation().wait(); });
}

int tutti_comm_wait_for(tutti_comm_plan* plan, double seconds, int* done) {
  return capi::guarded(capi::failure_of(plan), [&] {
    comm::Operation& operation = capi::given(plan, "plan").operation();
    int& result = capi::given(done, "done");
    if (!std::isfinite(seconds) || seconds < 0)
      throw ::ConfigError(fmt::format("a wait of {} seconds", seconds));
    result = operation.wait_for(seconds) ? 1 : 0;
  });
}

int tutti_comm_plan_destroy(tutti_comm_plan* plan) {
  return capi::guarded([&] {
    if (plan == nullptr) return;
    const comm::Operation& operation = plan->operation();
    if (operation.in_flight() && !operation.failed() && !*plan->owner->failed)
      throw capi::StateError(
          fmt::format("'{}' is in flight: wait for it before it is destroyed", operation.name()));
    tutti_comm& owner = *plan->owner;
    std::atomic<int>* const exposed_in_use = plan->exposed_in_use;
    {
      const std::lock_guard lock(owner.mutex);
      const std::unique_ptr<tutti_comm_plan> last(plan);
    }
    --owner.in_use;
    if (exposed_in_use != nullptr) --*exposed_in_use;
  });
}

int tutti_comm_plan_algorithm(const tutti_comm_plan* plan, const char** name) {
  return capi::guarded(
      [&] { capi::given(name, "name") = collective_of(plan).algorithm().c_str(); });
}

int tutti_comm_plan_print(const tutti_comm_plan* plan, char* text, size_t capacity,
                          size_t* length) {
  return capi::guarded([&] {
    const comm::CollectiveOperation& operation = collective_of(plan);
    std::string all = comm::to_string(operation.schedule());
    if (operation.chunks() > 1) all = fmt::format("chunk 1 of {}: ", operation.chunks()) + all;
    if (capacity > 0) {
      const size_t n = std::min(all.size(), capacity - 1);
      std::memcpy(&capi::given(text, "text"), all.data(), n);
      text[n] = 0;
    }
    if (length != nullptr) *length = all.size();
  });
}

int tutti_comm_plan_rebind(tutti_comm_plan* plan, const void* input, void* output) {
  return capi::guarded(capi::failure_of(plan), [&] {
    const comm::Operation& operation = capi::given(plan, "plan").operation();
    if (!plan->rebindable)
      throw capi::StateError(
          fmt::format("'{}' was not planned with `rebindable`", operation.name()));
    refuse_in_flight(operation, "is in flight: wait for it before its buffers change");
    plan->bound = false;  // in case memory for the new buffers is short
    if (plan->collective) {
      plan->collective->rebind(input, output);
    } else if (plan->access) {
      auto* const data =
          static_cast<std::byte*>(output != nullptr ? output : const_cast<void*>(input));
      if (plan->bytes > 0) capi::given(data, "input or output");
      plan->rebind_access({data, plan->bytes});
    } else {
      auto* const data =
          static_cast<std::byte*>(plan->receives ? output : const_cast<void*>(input));
      if (plan->bytes > 0) capi::given(data, plan->receives ? "output" : "input");
      plan->message->rebind({data, plan->bytes});
    }
    plan->bound = true;
  });
}
