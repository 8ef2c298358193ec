#pragma once
// RemoteMemory: memory that every rank of a communicator exposes to all others, which put to it,
// get from it and accumulate into it. Parameter servers, gossip and halos are built on it.
//
// The owner calls nothing for the others' requests: a rank serves them whenever it makes progress
// (Communicator::progress(), any wait or test of such an operation, progress threads). A rank that
// computes for long without any of these lets them wait. Neighbours, which see the memory, put and
// get by themselves; everything else the owner does.
//
// - An accumulate is applied whole or not at all, and one after another: no sum is lost, and a
//   fetch or an atomic get sees each one whole or not at all. Puts and other gets are not
//   separated from anything: bytes written meanwhile may be read as a mixture.
// - A rank has one request at a time under way to a target, and its requests to one target are done
//   in the order in which they were started. Requests of different ranks have no order.
// - The memory that a rank keeps does not grow with the number of requesting ranks: see
//   remote/service.h. It knows the size of every rank's memory, eight bytes a rank.
// - Messages go over the wire itself: comm.check and shaped links do not affect them.
//
//   RemoteMemory memory(c, n * sizeof(float));
//   const auto push = memory.plan_accumulate({.rank = 0, .data = gradient});
//   push->start();                        // then compute what does not write the gradient
//   push->wait();                         // rank 0 has added it

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tutti/capi/remote/remote_access.h"
#include "tutti/capi/remote/request.h"

namespace tutti::comm {
class Communicator;
class Window;
}  // namespace tutti::comm

namespace tutti::capi {

namespace remote {
class OwnMemory;
class Service;
}  // namespace remote

/// One rank's handle, for the thread that owns the communicator. It outlives its operations. It is
/// destroyed before the communicator, on each rank separately, when no rank has requests any more:
/// after a barrier that follows the last wait. The tags are given back then. Progress threads are
/// set before (Communicator::set_progress).
class RemoteMemory {
 public:
  /// Collective; `bytes` is each rank's own. When one rank throws, all do.
  RemoteMemory(comm::Communicator& communicator, size_t bytes);
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// Returns the memory that this rank exposes: initially zeros, aligned to 64 bytes.
  std::span<std::byte> data() const;
  /// Returns the bytes that a rank exposes.
  size_t bytes(int rank) const { return sizes_[static_cast<size_t>(rank)]; }

  /// Plan requests. Not collective. They throw PlanError for impossible requests, and any other
  /// CommError when serving the other ranks has failed; nothing is sent then.
  std::unique_ptr<RemoteAccess> plan_put(const RemoteSpec& spec);
  std::unique_ptr<RemoteAccess> plan_get(const RemoteSpec& spec);
  std::unique_ptr<RemoteAccess> plan_accumulate(const RemoteSpec& spec);
  /// Plans an accumulate that returns the previous values in place of its data.
  std::unique_ptr<RemoteAccess> plan_fetch(const RemoteSpec& spec);

  /// Returns how many accumulates and fetches have been applied to this rank's memory.
  uint64_t accumulates() const;
  /// Waits until there have been that many. A wait for work has no time-out. Throws CommError when
  /// one of `from` is found dead, without raising an alarm: the caller may go on with the others.
  /// Throws as any wait does when another rank gives up.
  void wait_for_accumulates(uint64_t count, std::span<const int> from);

  /// While it lives, no accumulate, fetch or atomic get is applied here, and the owner may read and
  /// write freely, for instance for a step of an optimiser. To be held briefly, without waits.
  class [[nodiscard]] Hold {
   public:
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    friend class RemoteMemory;
    explicit Hold(remote::OwnMemory& own);
    remote::OwnMemory& own_;
  };
  Hold hold() { return Hold(*own_); }

  /// The most that serving others has taken so far.
  struct Taken {
    size_t requests = 0;  ///< requests at a time
    size_t bytes = 0;     ///< bytes of their data
  };
  Taken taken() const;

 private:
  friend class RemoteAccess;
  remote::Lane& lane_to(int rank);
  std::unique_ptr<RemoteAccess> plan(Access access, const RemoteSpec& spec);
  void check_service();

  comm::Communicator& communicator_;
  std::vector<uint64_t> sizes_;  // bytes that each rank exposes
  std::unique_ptr<comm::Window> window_;
  std::vector<int> numbers_;  // numbers of the tags
  remote::Ways ways_;
  std::unique_ptr<remote::OwnMemory> own_;
  std::unique_ptr<remote::Service> service_;     // where other ranks may have requests
  std::unordered_map<int, remote::Lane> lanes_;  // to the ranks for which this one has planned
                                                 // requests
};

}  // namespace tutti::capi
