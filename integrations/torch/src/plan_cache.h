#pragma once
// PlanCache: keeps plans of a process group's collectives for the next call.
//
// Planning is collective, so all ranks must find the same calls in their caches. Therefore the
// cache depends on nothing that differs between ranks: neither on the buffers (a plan takes any)
// nor on what has been completed. The k-th call of a signature takes slot k mod slots; if a work
// still uses the slot, the call waits for it.

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "group.h"
#include "plan.h"

namespace tutti_torch {

enum class Kind : uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  reduce_scatter,
  allgather,
  gather,
  scatter,
  all_to_all
};

/// The parameters of a call; the same on every rank. Counts are in elements: of the whole vector
/// (broadcast, reduce, allreduce), or of each rank's part of it.
struct Signature {
  Kind kind = Kind::barrier;
  int type = TUTTI_COMM_BYTE;
  int op = TUTTI_COMM_SUM;
  int root = 0;
  size_t count = 0;
  std::vector<size_t> counts = {};  ///< reduce_scatter, allgather: parts of unequal sizes
  auto operator<=>(const Signature&) const = default;
};

/// Makes a plan. Collective. The buffers come with tutti_comm_plan_rebind.
Plan make_plan(const Group& group, const Signature& signature);

/// An all_to_all of blocks of any sizes, in bytes, one after another in each buffer. Not
/// collective, and not kept: ranks agree on nothing, so a plan costs little, and the next call may
/// have other sizes. All ranks start them in the same order.
struct Blocks {
  std::vector<size_t> send, receive;  ///< sizes by rank
};
Plan make_plan(const Group& group, const Blocks& blocks, const void* input, void* output);

/// One end of a message, of this rank alone.
struct Message {
  bool send = false;
  int peer = 0;
  int tag = 0;
  size_t bytes = 0;
};
Plan make_plan(const Group& group, const Message& message);

/// A plan, and the work that used it last.
struct Slot {
  Plan plan;
  c10::weak_intrusive_ptr<c10d::Work> user;  ///< a TuttiWork
};
/// Makes a slot without a user, which is in no cache.
std::shared_ptr<Slot> make_slot(Plan plan);

/// For one thread at a time.
class PlanCache {
 public:
  explicit PlanCache(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  /// Returns a slot without a user; the caller becomes its user. Collective when the slot is new.
  /// It lives as long as a work uses it, even after the cache has dropped it: therefore shared.
  std::shared_ptr<Slot> take(const Signature& signature);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::vector<std::shared_ptr<Slot>> slots;
    size_t bytes = 0;  // size of the long vector
    uint64_t calls = 0;
    uint64_t last = 0;  // number of the latest call
    size_t kept() const { return slots.size() * bytes; }
  };
  void make_room(const Signature& needed);

  std::shared_ptr<Group>
      group_;  // shared with works in flight, which may outlive the process group
  std::map<Signature, Entry> entries_;
  uint64_t calls_ = 0;
};

}  // namespace tutti_torch
