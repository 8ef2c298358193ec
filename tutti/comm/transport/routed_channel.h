#pragma once
// RoutedChannel: the messages of one operation, each over the transport that reaches its peer:
// shared memory for neighbours, the wire for the others. It also ends every channel's life: it
// reports to the communicator how its number was left.

#include <functional>
#include <memory>
#include <vector>

#include "tutti/comm/transport/channel.h"
#include "tutti/comm/transport/channel_numbers.h"
#include "tutti/comm/transport/neighbours.h"
#include "tutti/comm/transport/shm/mailboxes.h"

namespace tutti::comm {

class RoutedChannel final : public Channel {
 public:
  using Open =
      std::function<std::unique_ptr<Channel>(std::vector<RoundOfMessages> rounds, int number)>;
  /// Opens a SharedChannel by `near` to the neighbours of `communicator`, and a channel by `far` to
  /// the other ranks; each only where there are messages. Takes its number from `numbers`, which
  /// outlives it.
  RoutedChannel(const Communicator& communicator, const std::shared_ptr<Mailboxes>& near,
                const Open& far, std::vector<RoundOfMessages> rounds, ChannelNumbers& numbers);
  ~RoutedChannel() override;

  void expect() override;
  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override;
  bool received() override;
  const std::byte* where(size_t i) const override;
  void release() override;
  bool sent() override;
  size_t leaving() override;
  Missing missing() const override;

 private:
  struct Parts {
    std::vector<RoundOfMessages> near, far;
    bool has_near = false, has_far = false;
  };
  Parts parts_of(const std::vector<RoundOfMessages>& rounds) const;

  const Neighbours& neighbours_;
  ChannelNumbers& numbers_;
  int number_;
  std::unique_ptr<Channel> near_, far_;  // null where no messages go that way
  // For each receive of a round, where both ways are used: the transport, and the index there.
  struct Way {
    bool near = true;
    size_t index = 0;
  };
  std::vector<std::vector<Way>> ways_;
  size_t round_ = 0;
  uint64_t runs_ = 0;
  bool complete_ = true;  // whether the posted round is complete, as far as this rank has looked
};

}  // namespace tutti::comm
