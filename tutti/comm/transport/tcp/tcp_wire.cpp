#include "tutti/comm/transport/tcp/tcp_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/numeric/hash.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/transport/tcp/tcp_channel.h"

namespace tutti::comm {
namespace {

std::vector<int> ranks_below(int size) {
  std::vector<int> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class TcpMessages final : public Wire::Messages {
 public:
  TcpMessages(std::shared_ptr<tcp::Switchboard> board, const std::vector<int>& members, uint64_t id)
      : board_(std::move(board)), members_(members), id_(id) {}
  ~TcpMessages() override {
    for (Message& message : messages_) {
      board_->withdraw(message.out);
      board_->withdraw(message.in);
    }
  }

  bool test() override {
    if (!all_done()) {
      board_->move();
      if (!all_done()) return false;
    }
    for (const Message& message : messages_)
      if (!message.in.fits())
        throw CommError(other_size(fmt::format("rank {} of this group", message.peer),
                                   message.in.arrived, message.in.room));
    return true;
  }
  bool done(size_t i) const override { return messages_[i].done(); }
  size_t arrived(size_t i) const override { return messages_[i].in.arrived; }

 private:
  struct Message {  // one of the two
    int peer = 0;
    tcp::Outgoing out;
    tcp::Incoming in;
    bool done() const { return out.done && in.done; }
  };
  tcp::Key key(int peer, int tag) const { return {members_[static_cast<size_t>(peer)], tag, id_}; }
  void post_send(const void* data, size_t bytes, int to, int tag, bool until_taken) override {
    Message& message = messages_.emplace_back();
    message.peer = to;
    message.out.key = key(to, tag);
    message.out.data = static_cast<const std::byte*>(data);
    message.out.bytes = bytes;
    message.out.taken = until_taken;
    board_->send(message.out);
  }
  void post_receive(void* data, size_t room, int from, int tag, bool exactly) override {
    Message& message = messages_.emplace_back();
    message.peer = from;
    message.in.key = key(from, tag);
    message.in.data = static_cast<std::byte*>(data);
    message.in.room = room;
    message.in.exactly = exactly;
    board_->receive(message.in);
  }
  bool all_done() const { return std::ranges::all_of(messages_, &Message::done); }

  std::shared_ptr<tcp::Switchboard> board_;
  std::vector<int> members_;
  uint64_t id_;
  std::deque<Message> messages_;
};

class TcpInbox final : public Wire::Inbox {
 public:
  TcpInbox(std::shared_ptr<tcp::Switchboard> board, const std::vector<int>& members, uint64_t id,
           size_t room, int tag)
      : board_(std::move(board)), members_(members), room_(room) {
    in_.key = {tcp::kAnybody, tag, id};
    in_.data = room_.data();
    in_.room = room;
    in_.exactly = false;
    board_->open_inbox(id, tag);
  }
  ~TcpInbox() override {
    board_->withdraw(in_);
    board_->close_inbox(in_.key.wire, in_.key.tag);
  }
  std::optional<Letter> next() override {
    if (!std::exchange(posted_, true)) board_->receive(in_);
    if (!in_.done) board_->move();
    if (!in_.done) return std::nullopt;
    posted_ = false;
    const int from = static_cast<int>(std::ranges::find(members_, in_.from) - members_.begin());
    if (!in_.fits())
      throw CommError(
          other_size(fmt::format("rank {} of this group", from), in_.arrived, in_.room));
    return Letter{from, std::span(room_).first(in_.arrived)};
  }

 private:
  std::shared_ptr<tcp::Switchboard> board_;
  std::vector<int> members_;
  std::vector<std::byte> room_;
  tcp::Incoming in_;
  bool posted_ = false;
};

}  // namespace

TcpWire::TcpWire(std::shared_ptr<tcp::Switchboard> board, int rank, int size,
                 std::shared_ptr<JobEnd> end)
    : TcpWire(std::move(board), std::move(end), rank, ranks_below(size), 1) {}

TcpWire::TcpWire(std::shared_ptr<tcp::Switchboard> board, std::shared_ptr<JobEnd> end, int rank,
                 std::vector<int> members, uint64_t id)
    : Wire(rank, static_cast<int>(members.size())), board_(std::move(board)), end_(std::move(end)),
      members_(std::move(members)), id_(id) {}

TcpWire::~TcpWire() { board_->close(id_); }

std::unique_ptr<Wire::Messages> TcpWire::messages() {
  return std::make_unique<TcpMessages>(board_, members_, id_);
}

std::unique_ptr<Wire::Inbox> TcpWire::inbox(size_t room, int tag) {
  return std::make_unique<TcpInbox>(board_, members_, id_, room, tag);
}

std::unique_ptr<Channel> TcpWire::channel(const Communicator& communicator,
                                          std::vector<RoundOfMessages> rounds, int number) {
  return std::make_unique<TcpChannel>(communicator, std::move(rounds), board_, members_,
                                      tcp::Key{.tag = tag_of_channel(number), .wire = id_});
}

// All ranks have made equally many parts of this wire, so its id, that number and the first member
// name the part: no message is needed to agree on it.
std::unique_ptr<Wire> TcpWire::part(const std::vector<int>& members, const std::string& /*what*/,
                                    double /*timeout*/) {
  const auto mine = std::ranges::find(members, rank()) - members.begin();
  std::vector<int> in_group;
  for (const int p : members) in_group.push_back(group_rank(p));
  Fnv1a id;
  id.add(id_), id.add(++parts_), id.add(static_cast<uint64_t>(in_group.front()));
  return std::unique_ptr<Wire>(
      new TcpWire(board_, end_, static_cast<int>(mine), std::move(in_group), id.value()));
}

void TcpWire::raise_alarm() {
  board_->raise_alarm();
  alarm();
}

std::optional<int> TcpWire::alarm() {
  const std::optional<int> by = board_->alarm();
  if (by && end_) end_->failed(*by);
  return by;
}

void TcpWire::abort(int code, const std::string& message) {
  if (end_) {
    raise_alarm();
    end_->abort(code, message);
  }
  do_last_act(message);
  board_->raise_alarm();
  std::_Exit(code);
}

}  // namespace tutti::comm
