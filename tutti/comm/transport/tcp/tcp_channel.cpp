#include "tutti/comm/transport/tcp/tcp_channel.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

template <class Message>
std::vector<Message> room_for_largest(const std::vector<RoundOfMessages>& rounds,
                                      std::vector<RoundOfMessages::Item> RoundOfMessages::*items) {
  size_t most = 0;
  for (const RoundOfMessages& round : rounds) most = std::max(most, (round.*items).size());
  return std::vector<Message>(most);
}

}  // namespace

TcpChannel::TcpChannel(const Communicator& communicator, std::vector<RoundOfMessages> rounds,
                       std::shared_ptr<tcp::Switchboard> board, const std::vector<int>& members,
                       const tcp::Key& key)
    : communicator_(communicator), rounds_(std::move(rounds)), board_(std::move(board)),
      members_(members), key_(key),
      incoming_(room_for_largest<tcp::Incoming>(rounds_, &RoundOfMessages::receives)),
      outgoing_(room_for_largest<tcp::Outgoing>(rounds_, &RoundOfMessages::sends)) {}

TcpChannel::~TcpChannel() {
  for (tcp::Incoming& message : incoming_) board_->withdraw(message);
  for (tcp::Outgoing& message : outgoing_) board_->withdraw(message);
}

void TcpChannel::rebind(std::vector<RoundOfMessages> rounds) { rounds_ = std::move(rounds); }

tcp::Key TcpChannel::key_of(int peer) const {
  tcp::Key key = key_;
  key.peer = members_[static_cast<size_t>(peer)];
  return key;
}

void TcpChannel::receive(size_t round) {
  round_ = round;
  checked_ = false;
  const std::vector<RoundOfMessages::Item>& receives = rounds_[round].receives;
  for (size_t i = 0; i < receives.size(); ++i) {
    tcp::Incoming& message = incoming_[i];
    message.key = key_of(receives[i].peer);
    message.data = receives[i].data;
    message.room = receives[i].bytes;
    board_->receive(message);
  }
}

void TcpChannel::expect() {
  if (rounds_.empty() || std::exchange(expected_, true)) return;
  receive(0);
}

void TcpChannel::post(size_t round) {
  if (round > 0 || !std::exchange(expected_, false)) receive(round);
  const RoundOfMessages& items = rounds_[round];
  for (size_t i = 0; i < items.sends.size(); ++i) {
    const RoundOfMessages::Item& item = items.sends[i];
    tcp::Outgoing& message = outgoing_[i];
    message.key = key_of(item.peer);
    message.data = item.data;
    message.bytes = item.bytes;
    message.taken = items.until_taken;
    board_->send(message);
  }
}

bool TcpChannel::all_received() const {
  return std::ranges::all_of(incoming_, [](const auto& message) { return message.done.load(); });
}

bool TcpChannel::all_sent() const {
  return std::ranges::all_of(outgoing_, [](const auto& message) { return message.done.load(); });
}

bool TcpChannel::received() {
  if (!all_received()) {
    board_->move();
    if (!all_received()) return false;
  }
  if (std::exchange(checked_, true)) return true;
  for (size_t i = 0; i < rounds_[round_].receives.size(); ++i)
    if (!incoming_[i].fits())
      throw CommError(other_size(communicator_.rank_name(rounds_[round_].receives[i].peer),
                                 incoming_[i].arrived, incoming_[i].room));
  return true;
}

bool TcpChannel::sent() {
  if (all_sent()) return true;
  board_->move();
  return all_sent();
}

size_t TcpChannel::leaving() {
  size_t bytes = 0;
  if (!sent())
    for (const tcp::Outgoing& message : outgoing_) bytes += message.done ? 0 : message.bytes;
  return bytes;
}

Channel::Missing TcpChannel::missing() const {
  Missing missing;
  const RoundOfMessages& items = rounds_[round_];
  for (size_t i = 0; i < items.receives.size(); ++i)
    if (!incoming_[i].done) missing.not_arrived.push_back(items.receives[i].peer);
  for (size_t i = 0; i < items.sends.size(); ++i)
    if (!outgoing_[i].done) missing.not_taken.push_back(items.sends[i].peer);
  return missing;
}

}  // namespace tutti::comm
