#pragma once
// Channel: the messages of one planned operation between the ranks of a communicator.
// Implementations: comm/transport/shm (ranks that see each other's memory), comm/transport/mpi,
// comm/transport/tcp, and routed_channel.h, which takes one of them for each peer.
//
// A channel knows from the start all rounds that it will ever have to do. A message may be read in
// its sender's memory ("lent"): then received() gives the receiver access to it there, and the
// sender's message counts as sent only once the receiver has called release().

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tutti::comm {

class Communicator;

/// One rank's messages of one round. Addresses are fixed, except those that rebind() moves.
struct RoundOfMessages {
  struct Item {
    int peer = 0;
    std::byte* data = nullptr;
    size_t bytes = 0;
    bool moves = false;  ///< rebind() gives it other addresses; `data` is null before the first
  };
  std::vector<Item> receives;
  std::vector<Item> sends;
  bool may_borrow = false;   ///< received blocks are only read before release(): no copy is needed
  bool until_taken = false;  ///< sends have left only when their receivers have posted this round:
                             ///< where nothing else holds the sender back
};

/// Not thread-safe. Rounds are posted in their order, round 0 after the last; each is posted when
/// the previous one is complete and released.
class Channel {
 public:
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Announces that the next post() is of round 0, maybe much later: messages sent now find space.
  virtual void expect() {}
  virtual void post(size_t round) = 0;
  /// Sets other addresses of the messages that move. Not collective, when no round is posted.
  virtual void rebind(std::vector<RoundOfMessages> rounds) = 0;
  /// Returns whether all messages of the posted round have arrived. Makes progress, never blocks.
  virtual bool received() = 0;
  /// Returns where message i of the round's receives lies, once received() is true: at its own
  /// address, or at the sender's.
  virtual const std::byte* where(size_t i) const = 0;
  /// Declares that received data will not be read any more (where they were borrowed).
  virtual void release() = 0;
  /// Returns whether all messages of the posted round have left: their memory may be written again,
  /// and, with RoundOfMessages::until_taken, their receivers are there. Never blocks.
  virtual bool sent() = 0;
  /// Returns the bytes of the posted round that the link of this rank is still busy with, as far as
  /// the transport knows: messages posted now leave after them.
  virtual size_t leaving() = 0;
  /// The ranks for which the posted round waits; a peer may come twice.
  struct Missing {
    std::vector<int> not_arrived;  ///< their messages have not arrived
    std::vector<int> not_taken;    ///< they have not taken ours
  };
  virtual Missing missing() const = 0;

 protected:
  Channel() = default;
};

/// A channel around another, which does what this one does not.
class ChannelAround : public Channel {
 public:
  void expect() override { inner_->expect(); }
  void post(size_t round) override {
    round_ = round;
    inner_->post(round);
  }
  void rebind(std::vector<RoundOfMessages> rounds) override {
    rounds_ = std::move(rounds);
    inner_->rebind(accompanied());
  }
  bool received() override { return inner_->received(); }
  const std::byte* where(size_t i) const override { return inner_->where(i); }
  void release() override { inner_->release(); }
  bool sent() override { return inner_->sent(); }
  size_t leaving() override { return inner_->leaving(); }
  Missing missing() const override { return inner_->missing(); }

 protected:
  explicit ChannelAround(std::vector<RoundOfMessages> rounds,
                         std::unique_ptr<Channel> inner = nullptr)
      : rounds_(std::move(rounds)), inner_(std::move(inner)) {}
  /// Returns the rounds of the other channel: those given, and messages besides. A class whose own
  /// memory these use destroys the other channel in its destructor.
  virtual std::vector<RoundOfMessages> accompanied() { return rounds_; }

  std::vector<RoundOfMessages> rounds_;  ///< as given by the user of this channel
  std::unique_ptr<Channel> inner_;
  size_t round_ = 0;  ///< the posted one
};

/// Makes a channel for these rounds. All ranks make the same ones in the same order; it can be used
/// after Channels::connect().
using OpenChannel = std::function<std::unique_ptr<Channel>(std::vector<RoundOfMessages>)>;
/// Makes a channel around another: it opens `inner` with the rounds, and perhaps its own messages.
using ChannelDecorator = std::function<std::unique_ptr<Channel>(
    Communicator&, std::vector<RoundOfMessages>, const OpenChannel& inner)>;

}  // namespace tutti::comm
