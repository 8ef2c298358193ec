// Messages between two ranks, planned or direct. Only its own rank calls each end.

#include <cstddef>
#include <memory>

#include "tutti/capi/arguments.h"
#include "tutti/capi/handles.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;

namespace {

std::unique_ptr<comm::MessageOperation> message_of(tutti_comm& owner, const comm::MessageSpec& spec,
                                                   bool receives) {
  comm::Communicator& communicator = *owner.communicator;
  return receives ? communicator.plan_receive(spec) : communicator.plan_send(spec);
}

void make_message(tutti_comm* comm, comm::MessageSpec spec, bool receives,
                  const tutti_comm_plan_options* given_options, tutti_comm_plan** plan) {
  tutti_comm& owner = capi::given(comm, "comm");
  tutti_comm_plan*& result = capi::given(plan, "plan");
  const auto options = capi::options_of_one_rank(given_options, "a message between two ranks");
  spec.name = capi::text_of(options.name);
  spec.priority = options.priority;
  auto made = std::make_unique<tutti_comm_plan>(tutti_comm_plan{.owner = &owner});
  made->rebindable = options.rebindable != 0;
  made->bound = !made->rebindable;
  made->receives = receives;
  made->bytes = spec.data.size();
  if (made->bound && made->bytes > 0) capi::given(spec.data.data(), "data");
  made->message = message_of(owner, spec, receives);
  ++owner.in_use;
  result = made.release();
}

// Returns the number of bytes sent or received.
size_t run_once(tutti_comm* comm, const comm::MessageSpec& spec, bool receives) {
  tutti_comm& owner = capi::given(comm, "comm");
  if (!spec.data.empty()) capi::given(spec.data.data(), "data");
  const auto message = message_of(owner, spec, receives);
  message->run();
  return message->arrived();
}

}  // namespace

int tutti_comm_plan_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag,
                         int patient, const tutti_comm_plan_options* options,
                         tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm), [&] {
    make_message(
        comm,
        {.peer = peer, .tag = tag, .data = capi::bytes_at(data, bytes), .patient = patient != 0},
        false, options, plan);
  });
}

int tutti_comm_plan_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                            int patient, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm), [&] {
    make_message(
        comm,
        {.peer = peer, .tag = tag, .data = capi::bytes_at(data, bytes), .patient = patient != 0},
        true, options, plan);
  });
}

int tutti_comm_send(tutti_comm* comm, const void* data, size_t bytes, int peer, int tag) {
  return capi::guarded(capi::failure_of(comm), [&] {
    run_once(comm, {.peer = peer, .tag = tag, .data = capi::bytes_at(data, bytes)}, false);
  });
}

int tutti_comm_receive(tutti_comm* comm, void* data, size_t bytes, int peer, int tag,
                       size_t* received) {
  return capi::guarded(capi::failure_of(comm), [&] {
    const size_t came =
        run_once(comm, {.peer = peer, .tag = tag, .data = capi::bytes_at(data, bytes)}, true);
    if (received != nullptr) *received = came;
  });
}

int tutti_comm_received(const tutti_comm_plan* plan, size_t* bytes) {
  return capi::guarded([&] {
    if (!capi::given(plan, "plan").receives) throw ::ConfigError("this plan receives no message");
    if (plan->message->in_flight() || plan->message->sequence() == 0)
      throw capi::StateError(
          fmt::format("'{}' has not been started and waited for", plan->message->name()));
    capi::given(bytes, "bytes") = plan->message->arrived();
  });
}
