#pragma once
// Channel: the messages of one planned operation between the ranks of a communicator.
// Implementations: comm/transport/shm (ranks that see each other's memory), comm/transport/mpi,
// comm/transport/tcp, and routed_channel.h, which takes one of them for each peer.
//
// A channel knows from the start all rounds that it will ever be asked for. A message may be read
// where its sender has it ("lent"): then the receiver finds it at received(), and the sender's
// message counts as sent only once the receiver has called release().

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace tutti::comm {

class Communicator;

/// One rank's messages of one round. Addresses are fixed, but for those that rebind() moves.
struct RoundOfMessages {
  struct Item {
    int peer = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;
    bool moves = false;  ///< rebind() gives it other addresses; before the first one `data` is null
  };
  std::vector<Item> receives;
  std::vector<Item> sends;
  bool may_borrow =
      false;  ///< received blocks are only read before release(), so that they need not be copied
  bool until_taken = false;  ///< sends have left only when their receivers have posted this round:
                             ///< where nothing else holds the sender back
};

/// Not thread-safe. Rounds are posted in their order, round 0 after the last; each is posted when
/// the one before it is complete and released.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// The next post() is of round 0, though perhaps not soon: whoever sends now should find room.
  virtual void expect() {}
  virtual void post(size_t round) = 0;
  /// The same messages, those that move at other addresses. Of this rank alone, when no round is
  /// posted.
  virtual void rebind(std::vector<RoundOfMessages> rounds) = 0;
  /// Whether all messages of the posted round have arrived. Makes progress, never blocks.
  virtual bool received() = 0;
  /// Where message i of the round's receives lies, once received() said so: its own address, or the
  /// sender's.
  virtual const std::byte* where(size_t i) const = 0;
  /// What arrived will not be read any more (where it was borrowed).
  virtual void release() = 0;
  /// Whether all messages of the posted round have left: their memory may be written again, and,
  /// where RoundOfMessages::until_taken says so, their receivers are there. Never blocks.
  virtual bool sent() = 0;
  /// Bytes of the posted round that the link of this rank is still busy with: what is posted now
  /// goes after them. As far as the transport knows.
  virtual size_t leaving() = 0;
  /// Whom the posted round waits for; a peer may come twice.
  struct Missing {
    std::vector<int> not_arrived;  ///< their messages have not
    std::vector<int> not_taken;    ///< they have not taken ours
  };
  virtual Missing missing() const = 0;

 protected:
  Channel() = default;
};

/// Makes a channel for these rounds. All ranks make the same ones in the same order; it can be used
/// after Channels::connect().
using OpenChannel = std::function<std::unique_ptr<Channel>(std::vector<RoundOfMessages>)>;
/// Makes a channel around another: it opens `inner` with the rounds given, or with messages of its
/// own among them.
using ChannelDecorator = std::function<std::unique_ptr<Channel>(
    Communicator&, std::vector<RoundOfMessages>, const OpenChannel& inner)>;

}  // namespace tutti::comm
