#pragma once
// Messages of a planned operation over TCP. Internal to comm/transport/tcp.

#include <memory>
#include <vector>

#include "tutti/comm/transport/channel.h"
#include "tutti/comm/transport/tcp/switchboard.h"

namespace tutti::comm {

class TcpChannel final : public Channel {
 public:
  /// `communicator` names ranks in messages. `members` are its ranks in the whole group, and
  /// outlive the channel; tag and wire of `key` are used.
  TcpChannel(const Communicator& communicator, std::vector<RoundOfMessages> rounds,
             std::shared_ptr<tcp::Switchboard> board, const std::vector<int>& members,
             const tcp::Key& key);
  ~TcpChannel() override;

  void expect() override;
  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override;
  bool received() override;
  const std::byte* where(size_t i) const override { return rounds_[round_].receives[i].data; }
  void release() override {}
  bool sent() override;
  size_t leaving() override;
  Missing missing() const override;

 private:
  tcp::Key key_of(int peer) const;
  void receive(size_t round);
  bool all_received() const;
  bool all_sent() const;

  const Communicator& communicator_;
  std::vector<RoundOfMessages> rounds_;
  std::shared_ptr<tcp::Switchboard> board_;
  const std::vector<int>& members_;
  tcp::Key key_;
  bool expected_ = false;  // the receives of round 0 are posted, and nothing else of it
  size_t round_ = 0;
  // Messages of the posted round; as many as in the largest round, because they stay in place.
  std::vector<tcp::Incoming> incoming_;
  std::vector<tcp::Outgoing> outgoing_;
  bool checked_ = true;  // whether the sizes of arrived messages are checked
};

}  // namespace tutti::comm
