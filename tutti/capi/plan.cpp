// Plans collectives: each function describes its collective as a CollectiveSpec, and make_plan does
// the rest. Also plans exchanges, of which each rank makes its own plan.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tutti/capi/arguments.h"
#include "tutti/capi/handles.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;
using comm::Collective;
using comm::CollectiveSpec;
using comm::Slice;

namespace {

// Number of 8-byte elements in an address range: sums of sizes below it cannot wrap around.
constexpr size_t kMostElements = PTRDIFF_MAX / 8;

size_t ranks_of(tutti_comm* comm) {
  return static_cast<size_t>(capi::given(comm, "comm").communicator->size());
}

size_t elements(size_t count, size_t ranks) {
  if (count > kMostElements / ranks)
    throw ::ConfigError(fmt::format("{} elements{} are more than any memory holds", count,
                                    ranks == 1 ? "" : fmt::format(" for each of {} ranks", ranks)));
  return count * ranks;
}

// Returns the parts; without `begins` one lies after another.
std::vector<Slice> slices(const size_t* counts, const size_t* begins, size_t ranks,
                          const char* parameter) {
  capi::given(counts, parameter);
  std::vector<Slice> all;
  size_t end = 0;
  for (size_t q = 0; q < ranks; ++q) {
    const size_t begin = begins == nullptr ? end : begins[q];
    if (begin > kMostElements || counts[q] > kMostElements - begin)
      throw ::ConfigError(
          fmt::format("{}: element {} + {} lies beyond any memory", parameter, begin, counts[q]));
    all.push_back({begin, counts[q]});
    end = begin + counts[q];
  }
  return all;
}

void make_plan(tutti_comm* comm, CollectiveSpec spec, const tutti_comm_plan_options* given_options,
               tutti_comm_plan** plan) {
  tutti_comm& owner = capi::given(comm, "comm");
  tutti_comm_plan*& result = capi::given(plan, "plan");
  const auto options = capi::plan_options(given_options);
  elements(spec.count, 1);
  spec.name = capi::text_of(options.name);
  spec.algorithm = capi::text_of(options.algorithm);
  spec.reproducible = options.reproducible != 0;
  spec.chunk = options.chunk;
  spec.priority = options.priority;
  spec.rebindable = options.rebindable != 0;
  auto made = std::make_unique<tutti_comm_plan>(tutti_comm_plan{.owner = &owner});
  made->rebindable = spec.rebindable;
  made->bound = !spec.rebindable;
  {
    const std::lock_guard lock(owner.mutex);
    made->collective = owner.communicator->plan(spec);
  }
  ++owner.in_use;
  result = made.release();
}

// The number of elements of a vector that every rank has as a whole.
struct Whole {
  size_t count;
};

// Sets the length of a collective, and its parts: with counts each rank's own, else `count` each.
void deal(CollectiveSpec& spec, tutti_comm*, Whole whole) { spec.count = whole.count; }
void deal(CollectiveSpec& spec, tutti_comm* comm, size_t count) {
  spec.count = elements(count, ranks_of(comm));
}
void deal(CollectiveSpec& spec, tutti_comm* comm, const size_t* counts) {
  spec.parts = slices(counts, nullptr, ranks_of(comm), "counts");
  spec.count = spec.parts.back().end();
}

template <class Count>
int plan_parts(tutti_comm* comm, CollectiveSpec spec, Count count, int type, int op,
               const tutti_comm_plan_options* options, tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm), [&] {
    spec.element = capi::element_of(type);
    spec.op = capi::op_of(op);
    deal(spec, comm, count);
    make_plan(comm, std::move(spec), options, plan);
  });
}

}  // namespace

int tutti_comm_plan_barrier(tutti_comm* comm, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm),
                       [&] { make_plan(comm, {.kind = Collective::barrier}, options, plan); });
}

int tutti_comm_plan_broadcast(tutti_comm* comm, void* buffer, size_t count, int type, int root,
                              const tutti_comm_plan_options* options, tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::broadcast, .root = root, .output = buffer},
                    Whole{count}, type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_reduce(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int op, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan) {
  return plan_parts(comm,
                    {.kind = Collective::reduce, .root = root, .input = input, .output = output},
                    Whole{count}, type, op, options, plan);
}

int tutti_comm_plan_allreduce(tutti_comm* comm, const void* input, void* output, size_t count,
                              int type, int op, const tutti_comm_plan_options* options,
                              tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::allreduce, .input = input, .output = output},
                    Whole{count}, type, op, options, plan);
}

int tutti_comm_plan_reduce_scatter(tutti_comm* comm, const void* input, void* output, size_t count,
                                   int type, int op, const tutti_comm_plan_options* options,
                                   tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::reduce_scatter, .input = input, .output = output},
                    count, type, op, options, plan);
}

int tutti_comm_plan_reduce_scatterv(tutti_comm* comm, const void* input, void* output,
                                    const size_t* counts, int type, int op,
                                    const tutti_comm_plan_options* options,
                                    tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::reduce_scatter, .input = input, .output = output},
                    counts, type, op, options, plan);
}

int tutti_comm_plan_allgather(tutti_comm* comm, const void* input, void* output, size_t count,
                              int type, const tutti_comm_plan_options* options,
                              tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::allgather, .input = input, .output = output}, count,
                    type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_allgatherv(tutti_comm* comm, const void* input, void* output,
                               const size_t* counts, int type,
                               const tutti_comm_plan_options* options, tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::allgather, .input = input, .output = output}, counts,
                    type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_gather(tutti_comm* comm, const void* input, void* output, size_t count,
                           int type, int root, const tutti_comm_plan_options* options,
                           tutti_comm_plan** plan) {
  return plan_parts(comm,
                    {.kind = Collective::gather, .root = root, .input = input, .output = output},
                    count, type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_gatherv(tutti_comm* comm, const void* input, void* output, const size_t* counts,
                            int type, int root, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan) {
  return plan_parts(comm,
                    {.kind = Collective::gather, .root = root, .input = input, .output = output},
                    counts, type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_scatter(tutti_comm* comm, const void* input, void* output, size_t count,
                            int type, int root, const tutti_comm_plan_options* options,
                            tutti_comm_plan** plan) {
  return plan_parts(comm,
                    {.kind = Collective::scatter, .root = root, .input = input, .output = output},
                    count, type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_scatterv(tutti_comm* comm, const void* input, void* output,
                             const size_t* counts, int type, int root,
                             const tutti_comm_plan_options* options, tutti_comm_plan** plan) {
  return plan_parts(comm,
                    {.kind = Collective::scatter, .root = root, .input = input, .output = output},
                    counts, type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_all_to_all(tutti_comm* comm, const void* input, void* output, size_t count,
                               int type, const tutti_comm_plan_options* options,
                               tutti_comm_plan** plan) {
  return plan_parts(comm, {.kind = Collective::all_to_all, .input = input, .output = output}, count,
                    type, TUTTI_COMM_SUM, options, plan);
}

int tutti_comm_plan_all_to_allv(tutti_comm* comm, const void* input, const size_t* send_counts,
                                const size_t* send_begins, void* output,
                                const size_t* receive_counts, const size_t* receive_begins,
                                int type, const tutti_comm_plan_options* options,
                                tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm), [&] {
    CollectiveSpec spec{.kind = Collective::all_to_all,
                        .element = capi::element_of(type),
                        .input = input,
                        .output = output};
    spec.sends = slices(send_counts, send_begins, ranks_of(comm), "send_counts");
    spec.receives = slices(receive_counts, receive_begins, ranks_of(comm), "receive_counts");
    make_plan(comm, std::move(spec), options, plan);
  });
}

namespace {

std::vector<Slice> in_bytes(std::vector<Slice> blocks, comm::Element element) {
  const size_t size = comm::size_of(element);
  for (Slice& block : blocks) block = {block.begin * size, block.count * size};
  return blocks;
}

}  // namespace

int tutti_comm_plan_exchange(tutti_comm* comm, const void* input, const size_t* send_counts,
                             const size_t* send_begins, void* output, const size_t* receive_counts,
                             const size_t* receive_begins, int type,
                             const tutti_comm_plan_options* given_options, tutti_comm_plan** plan) {
  return capi::guarded(capi::failure_of(comm), [&] {
    tutti_comm& owner = capi::given(comm, "comm");
    tutti_comm_plan*& result = capi::given(plan, "plan");
    const auto options = capi::options_of_one_rank(given_options, "an exchange");
    if (options.rebindable != 0)
      throw ::ConfigError("the buffers of an exchange come with its counts: plan another one");
    const comm::Element element = capi::element_of(type);
    const size_t ranks = ranks_of(comm);
    comm::BlockExchangeSpec spec{
        .name = capi::text_of(options.name),
        .sends = in_bytes(slices(send_counts, send_begins, ranks, "send_counts"), element),
        .receives =
            in_bytes(slices(receive_counts, receive_begins, ranks, "receive_counts"), element),
        .input = static_cast<const std::byte*>(input),
        .output = static_cast<std::byte*>(output),
        .priority = options.priority};
    auto made = std::make_unique<tutti_comm_plan>(tutti_comm_plan{.owner = &owner});
    made->exchange = std::make_unique<comm::BlockExchange>(*owner.communicator, std::move(spec));
    ++owner.in_use;
    result = made.release();
  });
}
