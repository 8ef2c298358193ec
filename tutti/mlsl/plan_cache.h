#pragma once
// PlanCache: plans of the collectives that a program asks for one by one, kept for the next time.
//
// Planning is collective, so all ranks of a group must find the same calls in their caches.
// Therefore nothing that is a rank's own enters: not the buffers (a plan takes any), and not which
// requests have been completed. The k-th call of a signature takes slot k mod slots; a request that
// still holds it is completed first.

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "tutti/mlsl/exchange.h"

namespace tutti::mlsl {

class Request;

/// Shared by the distribution it belongs to and by requests, which may outlive that.
class PlanCache : public std::enable_shared_from_this<PlanCache> {
 public:
  explicit PlanCache(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  ~PlanCache();

  Group& group() const { return *group_; }
  /// Collective when the signature is new: kind, type, op, count, root, parts (buffers are not
  /// looked at). Both belong to the exchange until the request is complete.
  std::unique_ptr<Request> start(const comm::CollectiveSpec& spec, const InputAndOutput& buffers);

  /// A plan, and the request that uses it at the moment.
  struct Slot {
    std::unique_ptr<Planned> planned;
    Request* user = nullptr;
  };

 private:
  using Signature =
      std::tuple<comm::Collective, comm::Element, comm::ReduceOp, size_t, int, std::vector<size_t>>;
  struct Entry {
    std::vector<std::unique_ptr<Slot>> slots;
    size_t bytes = 0;  // of the long vector
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
