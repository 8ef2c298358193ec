#pragma once
// RemoteMemory: memory that every rank of a communicator exposes to all others, who put to it, get
// from it and accumulate into it. What parameter servers, gossip and halos stand on.
//
// Nobody calls anything for what others do in its memory: a rank serves them whenever it makes
// progress (Communicator::progress(), any wait or test of such an operation, progress threads). A
// rank that computes for long without any of these lets them wait. Neighbours, who see the memory,
// put and get by themselves; everything else the owner does.
//
// - An accumulate is applied whole or not at all, and one after another: no sum is lost, and a
//   fetch or an atomic get sees all of each or nothing. Puts and other gets are not held apart from
//   anything: bytes that are written at the same time are read as some of both.
// - A rank has one request at a time under way to a target, and its requests to one target are done
//   in the order in which they were started. Requests of different ranks are in no order.
// - What a rank keeps does not grow with the number of those that ask: see remote/service.h. It
//   knows the size of every rank's memory, eight bytes a rank.
// - Messages are those of the wire itself: comm.check and shaped links do not see them.
//
//   const auto memory = c.expose(n * sizeof(float));
//   const auto push = memory->plan_accumulate({.rank = 0, .data = gradient});
//   push->start();                        // then compute what does not write the gradient
//   push->wait();                         // rank 0 has added it
//   memory->get(0, 0, weights);           // one-off, waited for

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tutti/comm/remote/remote_access.h"
#include "tutti/comm/remote/request.h"

namespace tutti::comm {

class Communicator;
class Window;
namespace remote {
class OwnMemory;
class Service;
}  // namespace remote

/// One rank's handle, of the thread that the communicator belongs to. Outlives its operations;
/// destroyed before the communicator, on each rank alone, when nobody asks for anything any more:
/// after a barrier that follows the last wait. The tags are given back then. Progress threads are
/// set before (Communicator::set_progress).
class RemoteMemory {
 public:
  /// The way in is Communicator::expose().
  RemoteMemory(Communicator& communicator, size_t bytes);
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  /// What this rank exposes: zeroed, aligned to 64 bytes.
  std::span<std::byte> data() const;
  /// Bytes that a rank exposes.
  size_t bytes(int rank) const { return sizes_[static_cast<size_t>(rank)]; }

  /// Of this rank alone. They throw PlanError for what cannot be, and any other CommError when
  /// serving the other ranks has failed; nothing is sent then.
  std::unique_ptr<RemoteAccess> plan_put(const RemoteSpec& spec);
  std::unique_ptr<RemoteAccess> plan_get(const RemoteSpec& spec);
  std::unique_ptr<RemoteAccess> plan_accumulate(const RemoteSpec& spec);
  /// An accumulate that returns what was there before, in place of its data.
  std::unique_ptr<RemoteAccess> plan_fetch(const RemoteSpec& spec);

  /// The same, once, and waited for. Throw CommError as a wait does.
  void put(int rank, size_t offset, std::span<const std::byte> data);
  void get(int rank, size_t offset, std::span<std::byte> data);
  void accumulate(int rank, size_t offset, std::span<const std::byte> data, Element element,
                  ReduceOp op = ReduceOp::sum);
  void fetch(int rank, size_t offset, std::span<std::byte> data, Element element,
             ReduceOp op = ReduceOp::sum);

  /// How many accumulates and fetches have been applied to this rank's memory.
  uint64_t accumulates() const;
  /// Until there have been so many. A wait for work: it has no time-out. Throws CommError when one
  /// of `from` is found dead, which alarms nobody: the caller may go on with those that are left.
  /// Throws as any wait when another rank gives up.
  void wait_for_accumulates(uint64_t count, std::span<const int> from);

  /// While it lives no accumulate, fetch or atomic get is applied here, and the owner may read and
  /// write as it likes, such as for a step of an optimiser. Not for long; nothing is waited for
  /// meanwhile.
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

  /// What serving others has taken at most, so far.
  struct Taken {
    size_t requests = 0;  ///< at a time
    size_t bytes = 0;     ///< of their data
  };
  Taken taken() const;

 private:
  friend class RemoteAccess;
  remote::Lane& lane_to(int rank);
  std::unique_ptr<RemoteAccess> plan(Access access, const RemoteSpec& spec);
  void run(Access access, const RemoteSpec& spec);
  void check_service();

  Communicator& communicator_;
  std::vector<uint64_t> sizes_;  // of every rank
  std::unique_ptr<Window> window_;
  std::vector<int> numbers_;  // of tags
  remote::Ways ways_;
  std::unique_ptr<remote::OwnMemory> own_;
  std::unique_ptr<remote::Service> service_;     // where anybody may ask
  std::unordered_map<int, remote::Lane> lanes_;  // to the ranks that this one has planned for
};

}  // namespace tutti::comm
