#pragma once
// PlanCache: keeps plans of the collectives that a program calls one by one, for the next call.
//
// Planning is collective, so all ranks of a group must find the same calls in their caches.
// Therefore the cache depends on nothing that differs between ranks: neither on the buffers (a plan
// takes any) nor on which requests have been completed. The k-th call of a signature takes slot k
// mod slots; a request that still holds the slot is completed first.

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "tutti/mlsl/exchange.h"

namespace tutti::mlsl {

class Request;

/// Shared by its distribution and by requests, which may outlive the distribution.
class PlanCache : public std::enable_shared_from_this<PlanCache> {
 public:
  explicit PlanCache(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  ~PlanCache();

  Group& group() const { return *group_; }
  /// Starts a collective. Collective when the signature is new: kind, type, op, count, root, parts
  /// (buffers are ignored). Both buffers belong to the exchange until the request is complete.
  std::unique_ptr<Request> start(const comm::CollectiveSpec& spec, const InputAndOutput& buffers);

  /// A plan, and the request that currently uses it.
  struct Slot {
    std::unique_ptr<Planned> planned;
    Request* user = nullptr;
  };

 private:
  using Signature =
      std::tuple<comm::Collective, comm::Element, comm::ReduceOp, size_t, int, std::vector<size_t>>;
  struct Entry {
    std::vector<std::unique_ptr<Slot>> slots;
    size_t bytes = 0;  // size of the long vector
    uint64_t starts = 0;
    uint64_t last = 0;  // number of the latest start
    size_t kept() const { return slots.size() * bytes; }
  };
  Slot& slot_for(const Signature& signature, const comm::CollectiveSpec& spec);
  static void release(Entry& entry);
  void make_room(const Signature& needed);

  std::shared_ptr<Group> group_;
  std::map<Signature, Entry> entries_;
  uint64_t starts_ = 0;
};

}  // namespace tutti::mlsl
