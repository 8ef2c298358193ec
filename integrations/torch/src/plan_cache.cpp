#include "plan_cache.h"

#include <algorithm>
#include <numeric>

#include "work.h"

namespace tutti_torch {
namespace {

constexpr size_t kEntries = 256;
constexpr size_t kBytes = size_t{512} << 20;  // for all long vectors together

// Returns how many calls of one signature may be under way: more of small ones.
size_t slots_of(size_t bytes) {
  return std::clamp((size_t{4} << 20) / std::max<size_t>(bytes, 1), size_t{2}, size_t{8});
}

size_t long_vector(const Signature& signature, int ranks) {
  constexpr size_t kWidest = 8;
  const size_t width = signature.type == TUTTI_COMM_BYTE ? 1 : kWidest;
  if (!signature.counts.empty())
    return width * std::accumulate(signature.counts.begin(), signature.counts.end(), size_t{0});
  const bool whole = signature.kind == Kind::broadcast || signature.kind == Kind::reduce ||
                     signature.kind == Kind::allreduce;
  return width * signature.count * (whole ? 1 : static_cast<size_t>(ranks));
}

}  // namespace

Plan make_plan(const Group& group, const Signature& s) {
  tutti_comm_plan_options options{};
  options.size = sizeof options;
  options.rebindable = 1;
  tutti_comm* const comm = group.comm();
  tutti_comm_plan* plan = nullptr;
  switch (s.kind) {
    case Kind::barrier:
      options.rebindable = 0;
      check(tutti_comm_plan_barrier(comm, &options, &plan));
      break;
    case Kind::broadcast:
      check(tutti_comm_plan_broadcast(comm, nullptr, s.count, s.type, s.root, &options, &plan));
      break;
    case Kind::reduce:
      check(tutti_comm_plan_reduce(comm, nullptr, nullptr, s.count, s.type, s.op, s.root, &options,
                                   &plan));
      break;
    case Kind::allreduce:
      check(tutti_comm_plan_allreduce(comm, nullptr, nullptr, s.count, s.type, s.op, &options,
                                      &plan));
      break;
    case Kind::reduce_scatter:
      if (s.counts.empty())
        check(tutti_comm_plan_reduce_scatter(comm, nullptr, nullptr, s.count, s.type, s.op,
                                             &options, &plan));
      else
        check(tutti_comm_plan_reduce_scatterv(comm, nullptr, nullptr, s.counts.data(), s.type, s.op,
                                              &options, &plan));
      break;
    case Kind::allgather:
      if (s.counts.empty())
        check(tutti_comm_plan_allgather(comm, nullptr, nullptr, s.count, s.type, &options, &plan));
      else
        check(tutti_comm_plan_allgatherv(comm, nullptr, nullptr, s.counts.data(), s.type, &options,
                                         &plan));
      break;
    case Kind::gather:
      check(
          tutti_comm_plan_gather(comm, nullptr, nullptr, s.count, s.type, s.root, &options, &plan));
      break;
    case Kind::scatter:
      check(tutti_comm_plan_scatter(comm, nullptr, nullptr, s.count, s.type, s.root, &options,
                                    &plan));
      break;
    case Kind::all_to_all:
      check(tutti_comm_plan_all_to_all(comm, nullptr, nullptr, s.count, s.type, &options, &plan));
      break;
  }
  return Plan(plan);
}

Plan make_plan(const Group& group, const Blocks& blocks, const void* input, void* output) {
  tutti_comm_plan* plan = nullptr;
  check(tutti_comm_plan_exchange(group.comm(), input, blocks.send.data(), nullptr, output,
                                 blocks.receive.data(), nullptr, TUTTI_COMM_BYTE, nullptr, &plan));
  return Plan(plan);
}

Plan make_plan(const Group& group, const Message& message) {
  tutti_comm_plan_options options{};
  options.size = sizeof options;
  options.rebindable = 1;
  tutti_comm_plan* plan = nullptr;
  check((message.send ? tutti_comm_plan_send(group.comm(), nullptr, message.bytes, message.peer,
                                             message.tag, 0, &options, &plan)
                      : tutti_comm_plan_receive(group.comm(), nullptr, message.bytes, message.peer,
                                                message.tag, 0, &options, &plan)));
  return Plan(plan);
}

std::shared_ptr<Slot> make_slot(Plan plan) {
  const c10::intrusive_ptr<c10d::Work> nobody;
  return std::make_shared<Slot>(Slot{std::move(plan), c10::weak_intrusive_ptr<c10d::Work>(nobody)});
}

std::shared_ptr<Slot> PlanCache::take(const Signature& signature) {
  Entry& entry = entries_[signature];
  entry.bytes = long_vector(signature, group_->size());
  entry.last = ++calls_;
  const size_t k = entry.calls % slots_of(entry.bytes);
  if (k == entry.slots.size()) {
    Plan plan = make_plan(*group_, signature);  // throws on all ranks, or on none
    entry.slots.push_back(make_slot(std::move(plan)));
    make_room(signature);
  }
  ++entry.calls;
  const std::shared_ptr<Slot>& slot = entry.slots[k];
  if (const auto user = slot->user.lock()) static_cast<TuttiWork&>(*user).wait_until_complete();
  group_->check_usable();  // a failed work releases its plan
  return slot;
}

// Uses only numbers that are the same on all ranks, so that all drop the same entry.
void PlanCache::make_room(const Signature& needed) {
  const auto total = [&] {
    size_t bytes = 0;
    for (const auto& [signature, entry] : entries_) bytes += entry.kept();
    return bytes;
  };
  while (entries_.size() > 1 && (entries_.size() > kEntries || total() > kBytes)) {
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& item) { return item.second.last; });
    if (oldest->first == needed) return;
    entries_.erase(oldest);
  }
}

}  // namespace tutti_torch
