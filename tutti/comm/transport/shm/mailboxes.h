#pragma once
// Mailboxes: descriptors of the messages between neighbours, in one window for all channels of a
// communicator. A channel's number gives the place of its boxes, so opening a channel costs neither
// a message nor a mapping.
//
// A rank writes only its own boxes, one for each channel and neighbour. Peers map them for reading.
// Descriptors that do not fit a box, and copies of blocks that peers cannot see, lie in an arena in
// windows of the same kind, which grows when channels are planned.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tutti/comm/transport/shm/arena.h"
#include "tutti/comm/transport/shm/window_registry.h"

namespace tutti::comm {

/// Where a message lies.
struct MessageDescriptor {
  WindowRegistry::Location location;
  uint64_t bytes = 0;
};

/// A box from its owner to one peer, for one channel. Counts go on from channel to channel of the
/// same number. It has two lines each, because processors fetch lines in pairs.
struct Mailbox {
  static constexpr size_t kInside = 2;  ///< descriptors in the box itself
  alignas(128) uint64_t posted;         ///< messages sent to the peer
  uint64_t slots;  ///< descriptors that the owner writes in a cycle, inside or at `elsewhere`
  WindowRegistry::Location elsewhere;
  MessageDescriptor inside[kInside];
  alignas(128) uint64_t taken;  ///< the peer's messages with which the owner is done
};
static_assert(sizeof(Mailbox) == 256);

/// Not thread-safe, except for the boxes' contents and places: a channel may be used for the first
/// time while another thread plans.
class Mailboxes {
 public:
  /// Memory of this rank that its neighbours can read; where none is left, the next provide()
  /// supplies it. The destructor gives it back.
  class Room {
   public:
    Room(std::shared_ptr<Mailboxes> owner, size_t bytes);
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    std::byte* data() const { return data_; }  ///< null until memory is there
    /// Keeps the memory from being given back, because a peer may still read it.
    void abandon() { abandoned_ = true; }

   private:
    friend class Mailboxes;
    std::shared_ptr<Mailboxes> owner_;
    size_t bytes_;
    std::byte* data_ = nullptr;
    bool abandoned_ = false;
  };
  /// See Communicator::allocate. Collective.
  using Allocate = std::function<std::unique_ptr<Window>(size_t bytes)>;

  /// Serves `neighbours` ranks, of which this one is `self`.
  Mailboxes(int neighbours, int self, std::shared_ptr<const WindowRegistry> registry);

  /// Returns the bytes of the arena that this rank lacks for waiting Rooms.
  size_t lacking() const { return lacking_; }
  /// Returns whether there are boxes for that many numbers. The same on every rank.
  bool has_boxes(size_t numbers) const { return numbers <= boxes_.size() * kNumbers; }
  /// Provides boxes for `numbers` and, where `rooms` (the same on every rank) says that some rank
  /// lacks memory, memory for the waiting Rooms. Collective.
  void provide(size_t numbers, bool rooms, const Allocate& allocate);

  Mailbox& mine(int number, int peer) const { return box(number, self_, peer); }
  Mailbox& of_peer(int number, int peer) const { return box(number, peer, self_); }
  const WindowRegistry& registry() const { return *registry_; }
  int self() const { return self_; }

 private:
  static constexpr size_t kNumbers = 64;  // numbers whose boxes share a window
  // Bytes of a new piece of the arena: as many as there are already, so that the number of mappings
  // grows with the logarithm, between these bounds.
  static constexpr size_t kLeastArena = size_t{64} << 10, kMostArena = size_t{16} << 20;
  Mailbox& box(int number, int owner, int peer) const;

  size_t neighbours_;
  int self_;
  std::shared_ptr<const WindowRegistry> registry_;
  mutable std::mutex mutex_;  // guards boxes_
  std::vector<std::unique_ptr<Window>> boxes_, arenas_;
  Arena arena_;
  std::vector<Room*> waiting_;
  size_t lacking_ = 0, arena_bytes_ = 0;
};

}  // namespace tutti::comm
