// A plan, once made.

#include <algorithm>
#include <cstring>
#include <string>

#include "tutti/capi/handles.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;

int tutti_comm_start(tutti_comm_plan* plan) {
  return guarded([&] {
    comm::CollectiveOperation& operation = *given(plan, "plan").operation;
    if (operation.in_flight())
      throw StateError(fmt::format("'{}' was started and is still in flight: test or wait first",
                                   operation.name()));
    operation.start();
  });
}

int tutti_comm_test(tutti_comm_plan* plan, int* done) {
  return guarded([&] { given(done, "done") = given(plan, "plan").operation->test() ? 1 : 0; });
}

int tutti_comm_wait(tutti_comm_plan* plan) {
  return guarded([&] { given(plan, "plan").operation->wait(); });
}

int tutti_comm_plan_destroy(tutti_comm_plan* plan) {
  return guarded([&] {
    if (plan == nullptr) return;
    if (plan->operation->in_flight())
      throw StateError(fmt::format("'{}' is in flight: wait for it before it is destroyed",
                                   plan->operation->name()));
    --plan->owner->in_use;
    const std::unique_ptr<tutti_comm_plan> last(plan);
  });
}

int tutti_comm_plan_algorithm(const tutti_comm_plan* plan, const char** name) {
  return guarded([&] { given(name, "name") = given(plan, "plan").operation->algorithm().c_str(); });
}

int tutti_comm_plan_print(const tutti_comm_plan* plan, char* text, size_t capacity,
                          size_t* length) {
  return guarded([&] {
    const comm::CollectiveOperation& operation = *given(plan, "plan").operation;
    std::string all = comm::to_string(operation.schedule());
    if (operation.chunks() > 1) all = fmt::format("chunk 1 of {}: ", operation.chunks()) + all;
    if (capacity > 0) {
      const size_t n = std::min(all.size(), capacity - 1);
      std::memcpy(&given(text, "text"), all.data(), n);
      text[n] = 0;
    }
    if (length != nullptr) *length = all.size();
  });
}
