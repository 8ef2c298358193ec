#pragma once
// Messages among ranks that see each other's memory: threads of one process, or processes of one
// node.
//
// A sender publishes where its block lies; the receiver reads it there, copies it or computes with
// it, and says when it is done. Blocks outside shared windows are first copied into one by the
// sender (once, where several peers get the same block). No kernel calls; every counter has its own
// cache lines and one writer.
//   sender    writes the descriptor of its m-th message to a peer into slot m mod slots, then
//             stores `posted = m + 1` with release
//   receiver  sees posted > m with acquire, reads the block, then adds one to `taken` with release
//   sender    sees with acquire that all messages of its round are taken: blocks and slots may be
//             written again
// Steps of a message: 2 flags. Bytes: read once by the receiver, in place.

#include <memory>
#include <vector>

#include "tutti/comm/channel.h"
#include "tutti/comm/shm/window_registry.h"

namespace tutti::comm {

class Communicator;

class SharedChannel final : public Channel {
 public:
  /// Collective: allocates the mailboxes.
  SharedChannel(Communicator& communicator, std::shared_ptr<const WindowRegistry> registry,
                std::vector<RoundOfMessages> rounds);

  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override;
  bool received() override;
  const std::byte* where(size_t i) const override { return where_[i]; }
  void release() override;
  bool sent() override;
  std::vector<int> missing() const override;

 private:
  struct Descriptor {
    WindowRegistry::Location location;
    uint64_t bytes = 0;
  };
  // Mine towards one peer; the slots follow. Two lines each, because processors fetch lines in
  // pairs.
  struct Mailbox {
    alignas(128) uint64_t posted;  // my messages to the peer
    alignas(128) uint64_t taken;   // the peer's messages to me that I have done with
  };
  struct Outgoing {
    Descriptor descriptor;
    size_t bounce = 0;    // where in my window there is room for the block, if it needs any
    bool copied = false;  // peers cannot see the block itself
  };
  Mailbox& box(int owner, int peer) const;
  Descriptor* slots(int owner, int peer) const;
  size_t box_bytes() const;
  size_t reserve(size_t round);
  void place(size_t round);
  void take(size_t i);

  Communicator& communicator_;
  std::shared_ptr<const WindowRegistry> registry_;
  std::vector<RoundOfMessages> rounds_;
  std::vector<std::vector<Outgoing>> outgoing_;  // by round and send
  std::vector<std::vector<uint64_t>>
      number_in_round_;  // by round and receive: how many of the same peer come before it
  size_t slots_ = 1;
  std::unique_ptr<Window> window_;
  std::byte* bounce_ = nullptr;

  size_t round_ = 0;
  std::vector<uint64_t> sent_,
      taken_;  // by peer: messages in all rounds before this one is complete
  std::vector<const std::byte*> where_;
  size_t arrived_ = 0;  // receives of the round that are there
  bool open_ = false;   // what arrived has not been released
};

}  // namespace tutti::comm
