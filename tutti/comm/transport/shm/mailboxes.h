#pragma once
// Mailboxes: what neighbours tell each other about the messages of their channels, in one window
// for all channels of a communicator. A channel's number says where its boxes lie, so opening a
// channel costs neither a message nor a mapping.
//
// A rank writes its own boxes alone, one for each channel and neighbour. Peers map them for
// reading. What does not fit a box, and copies of blocks that peers cannot see, lie in an arena in
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

/// From its owner towards one peer, over one channel. Counts go on from channel to channel of the
/// same number. Two lines each, because processors fetch lines in pairs.
struct Mailbox {
  static constexpr size_t kInside = 2;  ///< descriptors in the box itself
  alignas(128) uint64_t posted;         ///< my messages to the peer
  uint64_t slots;  ///< descriptors that I write in turn: those inside, or as many at `elsewhere`
  WindowRegistry::Location elsewhere;
  MessageDescriptor inside[kInside];
  alignas(128) uint64_t taken;  ///< the peer's messages to me that I have done with
};
static_assert(sizeof(Mailbox) == 256);

/// Not thread-safe, but for what lies in the boxes, and where they lie: a channel may be used for
/// the first time while another thread plans.
class Mailboxes {
 public:
  /// Memory of this rank that its neighbours can read; it comes with the next provide() where none
  /// was left. Given back by the destructor.
  class Room {
   public:
    Room(std::shared_ptr<Mailboxes> owner, size_t bytes);
    ~Room();
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    std::byte* data() const { return data_; }  ///< null before there is any
    /// Something may still read it: it is not given back.
    void abandon() { abandoned_ = true; }

   private:
    friend class Mailboxes;
    std::shared_ptr<Mailboxes> owner_;
    size_t bytes_;
    std::byte* data_ = nullptr;
    bool abandoned_ = false;
  };
  /// Communicator::allocate. Collective.
  using Allocate = std::function<std::unique_ptr<Window>(size_t bytes)>;

  /// Among `neighbours` ranks, of which this one is `self`.
  Mailboxes(int neighbours, int self, std::shared_ptr<const WindowRegistry> registry);

  /// Bytes of the arena that this rank lacks for the rooms that wait.
  size_t lacking() const { return lacking_; }
  /// Whether there are boxes for so many numbers. The same on every rank.
  bool has_boxes(size_t numbers) const { return numbers <= boxes_.size() * kNumbers; }
  /// Boxes for `numbers` and, where `rooms` (the same on every rank) says that one lacks memory,
  /// memory for the rooms that wait. Collective.
  void provide(size_t numbers, bool rooms, const Allocate& allocate);

  Mailbox& mine(int number, int peer) const { return box(number, self_, peer); }
  Mailbox& of_peer(int number, int peer) const { return box(number, peer, self_); }
  const WindowRegistry& registry() const { return *registry_; }
  int self() const { return self_; }

 private:
  static constexpr size_t kNumbers = 64;  // whose boxes lie in one window
  // Bytes of a piece of the arena: as many as there are, so that the number of mappings grows with
  // the logarithm, between these bounds.
  static constexpr size_t kLeastArena = size_t{64} << 10, kMostArena = size_t{16} << 20;
  Mailbox& box(int number, int owner, int peer) const;

  size_t neighbours_;
  int self_;
  std::shared_ptr<const WindowRegistry> registry_;
  mutable std::mutex mutex_;  // of boxes_
  std::vector<std::unique_ptr<Window>> boxes_, arenas_;
  Arena arena_;
  std::vector<Room*> waiting_;
  size_t lacking_ = 0, arena_bytes_ = 0;
};

}  // namespace tutti::comm
