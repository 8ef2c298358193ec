#pragma once
// Channels: opens the channels of a communicator: their numbers, their decorators, and the memory
// that all ranks provide for the channels opened since the last time.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/comm/transport/channel.h"
#include "tutti/comm/transport/channel_numbers.h"

namespace tutti::comm {

class Communicator;

/// The services of a transport. Not collective, except provide().
class ChannelSource {
 public:
  /// Makes a channel that takes its number from `numbers`. Throws CommError where it cannot.
  virtual std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds,
                                                ChannelNumbers& numbers) = 0;
  /// Returns the bytes of shared memory that channels made since provide() lack on this rank.
  virtual size_t lacking() const = 0;
  /// Provides for the channels made since the last call: places for `channels` numbers and, where
  /// some rank lacks memory, `memory`. Both arguments are the same on every rank. Collective.
  virtual void provide(size_t channels, bool memory) = 0;

 protected:
  ~ChannelSource() = default;
};

/// Not thread-safe. All ranks open the same channels in the same order.
class Channels {
 public:
  /// Both arguments outlive this.
  Channels(Communicator& communicator, ChannelSource& source)
      : communicator_(communicator), source_(source) {}

  /// Opens a channel for the messages of one operation; usable after provide(). Not collective.
  std::unique_ptr<Channel> open(std::vector<RoundOfMessages> rounds);
  /// Returns the bytes that opened channels lack on this rank.
  size_t lacking() const { return source_.lacking(); }
  /// Makes opened channels ready for use. `memory`: some rank lacks some. Collective.
  void provide(bool memory) { source_.provide(numbers_.count(), memory); }
  /// Does the same, and asks whether some rank lacks memory.
  void connect();

  /// Takes a number for messages that need no channel: their tag is Wire::tag_of_channel(number).
  /// All ranks take numbers in the same order; the tag comes back when all have given it back.
  int take_number() { return numbers_.take(); }
  /// `clean`: every message with this tag has been taken up. Otherwise the tag is lost.
  void give_back(int number, bool clean) {
    numbers_.close(number, clean ? ChannelNumbers::End::complete : ChannelNumbers::End::abandoned,
                   1);
  }

  /// Returns how many numbers are taken: by operations alive, and by ended ones on which not all
  /// ranks have agreed yet. The same on every rank.
  size_t taken() const { return numbers_.taken(); }
  /// Asks which channels all ranks have closed, when it is due. Collective.
  void take_back();
  /// For channels that are refused after they were opened: undo_to() restores the numbers. The
  /// channels must be gone, and no rank may have used them.
  ChannelNumbers mark() const { return numbers_; }
  void undo_to(const ChannelNumbers& mark) { numbers_ = mark; }

  /// Wraps later channels in this, outside of earlier decorators.
  void decorate(ChannelDecorator decorator) { decorators_.push_back(std::move(decorator)); }
  /// Takes the decorators of `other`.
  void decorate_as(const Channels& other) { decorators_ = other.decorators_; }

 private:
  Communicator& communicator_;
  ChannelSource& source_;
  ChannelNumbers numbers_;
  std::vector<ChannelDecorator> decorators_;  // the innermost first
};

}  // namespace tutti::comm
