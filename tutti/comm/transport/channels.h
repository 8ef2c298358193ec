#pragma once
// Channels: how the channels of a communicator are opened: their numbers, what they are wrapped in,
// and the memory that all ranks provide for those that were opened since the last time.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/comm/transport/channel.h"
#include "tutti/comm/transport/channel_numbers.h"

namespace tutti::comm {

class Communicator;

/// What a transport gives. Of this rank alone, but provide().
class ChannelSource {
 public:
  /// A channel that takes its number from `numbers`. Throws CommError where it cannot.
  virtual std::unique_ptr<Channel> make_channel(std::vector<RoundOfMessages> rounds,
                                                ChannelNumbers& numbers) = 0;
  /// Bytes of shared memory that channels made since provide() lack on this rank.
  virtual size_t lacking() const = 0;
  /// What channels need that were made since: places for `channels` numbers and, where some rank
  /// lacks memory, `memory`. Both are the same on every rank. Collective.
  virtual void provide(size_t channels, bool memory) = 0;

 protected:
  ~ChannelSource() = default;
};

/// Not thread-safe. All ranks open the same channels in the same order.
class Channels {
 public:
  /// Both outlive this.
  Channels(Communicator& communicator, ChannelSource& source)
      : communicator_(communicator), source_(source) {}

  /// The messages of one operation; to be used after provide(). Of this rank alone.
  std::unique_ptr<Channel> open(std::vector<RoundOfMessages> rounds);
  /// Bytes that what was opened lacks on this rank.
  size_t lacking() const { return source_.lacking(); }
  /// Makes what was opened ready for use. `memory`: some rank lacks some. Collective.
  void provide(bool memory) { source_.provide(numbers_.count(), memory); }
  /// The same; asks whether some rank lacks memory.
  void connect();

  /// A number for messages that need no channel: their tag is Wire::tag_of_channel(number). Taken
  /// by all ranks in the same order; the tag comes back when all of them have given it back.
  int take_number() { return numbers_.take(); }
  /// `clean`: every message with this tag has been taken up. Otherwise the tag is lost.
  void give_back(int number, bool clean) {
    numbers_.close(number, clean ? ChannelNumbers::End::complete : ChannelNumbers::End::abandoned,
                   1);
  }

  /// How many there are: of operations alive, and of some that all ranks have not yet agreed to
  /// have ended. The same on every rank.
  size_t taken() const { return numbers_.taken(); }
  /// Asks which ones all ranks have closed, when it is time to. Collective.
  void take_back();
  /// For what is refused after it was opened: afterwards no numbers have been taken since. The
  /// channels must be gone, and no rank may have used them.
  ChannelNumbers mark() const { return numbers_; }
  void undo_to(const ChannelNumbers& mark) { numbers_ = mark; }

  /// Later ones are wrapped in this, outside of what was given before.
  void decorate(ChannelDecorator decorator) { decorators_.push_back(std::move(decorator)); }
  /// What `other` wraps its channels in.
  void decorate_as(const Channels& other) { decorators_ = other.decorators_; }

 private:
  Communicator& communicator_;
  ChannelSource& source_;
  ChannelNumbers numbers_;
  std::vector<ChannelDecorator> decorators_;  // the innermost first
};

}  // namespace tutti::comm
