#pragma once
// Messages among ranks that see each other's memory: threads of one process, or processes of one
// node.
//
// A sender publishes the location of its block; the receiver reads it there, copies it or computes
// with it, and reports when it is done. Blocks outside shared windows are first copied into one by
// the sender (once, where several peers get the same block). There are no kernel calls; every
// counter has its own cache lines and one writer.
//   sender    writes the descriptor of its m-th message to a peer into slot m mod slots, then
//             stores `posted = m + 1` with release
//   receiver  sees posted > m with acquire, reads the block, then adds one to `taken` with release
//   sender    sees with acquire that all messages of its round are taken: blocks and slots may be
//             written again
// A message takes 2 flags. Its bytes are read once by the receiver, in place.

#include <memory>
#include <vector>

#include "tutti/comm/transport/channel.h"
#include "tutti/comm/transport/neighbours.h"
#include "tutti/comm/transport/shm/mailboxes.h"

namespace tutti::comm {

class Communicator;

class SharedChannel final : public Channel {
 public:
  /// All peers in `rounds` are `neighbours`. `communicator` names ranks in messages. Boxes and
  /// Rooms of `number` must be provided before the first post().
  SharedChannel(const Communicator& communicator, const Neighbours& neighbours,
                std::shared_ptr<Mailboxes> mailboxes, std::vector<RoundOfMessages> rounds,
                int number);
  ~SharedChannel() override;

  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override;
  bool received() override;
  const std::byte* where(size_t i) const override { return where_[i]; }
  void release() override;
  bool sent() override;
  size_t leaving() override;
  Missing missing() const override;

 private:
  // A message that this rank sends.
  struct Outgoing {
    size_t peer = 0;  // by neighbour
    MessageDescriptor descriptor;
    size_t bounce = 0;    // offset of the block's copy behind bounce_, if it has space
    bool roomy = false;   // whether it has space
    bool copied = false;  // the block is copied, because peers cannot see it
  };
  struct Incoming {
    size_t peer = 0;
    uint64_t number_in_round = 0;  // earlier messages of the same peer
  };
  // The boxes and counts between this rank and a neighbour with whom it exchanges messages.
  struct Peer {
    Mailbox *mine = nullptr, *theirs = nullptr;
    MessageDescriptor* slots = nullptr;  // this rank's
    size_t most = 0;                     // most messages of one round
    uint64_t sent = 0, taken = 0;        // messages of posted rounds, and of released rounds
  };
  size_t reserve(size_t round, const Neighbours& neighbours);
  void place();
  void place(size_t round);
  void settle();
  void take(size_t i);

  const Communicator& communicator_;
  std::shared_ptr<Mailboxes> mailboxes_;
  std::vector<RoundOfMessages> rounds_;
  int number_;
  std::vector<Peer> peers_;                      // by neighbour
  std::vector<std::vector<Outgoing>> outgoing_;  // by round and send
  std::vector<std::vector<Incoming>> incoming_;  // by round and receive
  std::unique_ptr<Mailboxes::Room> room_;        // slots that do not fit the boxes, and copies
  size_t bounce_ = 0;                            // offset of the copies in the room
  bool settled_ = false;
  bool moves_ = false;      // some blocks move
  uint64_t placed_by_ = 0;  // version of the registry at the last place()

  size_t round_ = 0;
  std::vector<const std::byte*> where_;
  size_t arrived_ = 0;  // receives of the round that have arrived
  bool open_ = false;   // received data have not been released
};

}  // namespace tutti::comm
