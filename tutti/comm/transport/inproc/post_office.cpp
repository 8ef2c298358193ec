#include "tutti/comm/transport/inproc/post_office.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

std::string member(int rank) { return fmt::format("rank {} of this group", rank); }

}  // namespace

std::shared_ptr<PostOffice::Letter> PostOffice::post(Address address,
                                                     std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const int from = address.from;
  if (const Address inbox{kAnybody, address.to, address.tag}; inboxes_.contains(inbox))
    address = inbox;
  return boxes_[address].letters.emplace_back(
      std::make_shared<Letter>(Letter{address, from, bytes}));
}

bool PostOffice::taken(const Letter& letter) {
  const std::lock_guard lock(mutex_);
  return letter.taken;
}

uint64_t PostOffice::expect(const Address& address) {
  const std::lock_guard lock(mutex_);
  return boxes_[address].receivers.emplace_back(++receivers_);
}

void PostOffice::forget(const Address& address, uint64_t receiver) {
  const std::lock_guard lock(mutex_);
  std::erase(boxes_[address].receivers, receiver);
}

std::optional<PostOffice::Taken> PostOffice::take(const Address& address, uint64_t receiver,
                                                  std::span<std::byte> room) {
  const std::lock_guard lock(mutex_);
  Box& box = boxes_[address];
  const bool inbox = address.from == kAnybody;
  const auto place = inbox ? 0 : std::ranges::find(box.receivers, receiver) - box.receivers.begin();
  if (place >= std::ssize(box.letters)) return std::nullopt;
  Letter& letter = *box.letters[static_cast<size_t>(place)];
  if (letter.bytes.size() > room.size())
    throw CommError(other_size(member(letter.from), letter.bytes.size(), room.size()));
  std::ranges::copy(letter.bytes, room.begin());
  letter.taken = true;
  const Taken taken{letter.from, letter.bytes.size()};
  box.letters.erase(box.letters.begin() + place);
  if (!inbox) box.receivers.erase(box.receivers.begin() + place);
  return taken;
}

void PostOffice::take_back(const std::shared_ptr<Letter>& letter) {
  const std::lock_guard lock(mutex_);
  std::erase(boxes_[letter->address].letters, letter);
}

void PostOffice::open_inbox(const Address& address) {
  const std::lock_guard lock(mutex_);
  inboxes_.insert(address);
}

void PostOffice::close_inbox(const Address& address) {
  const std::lock_guard lock(mutex_);
  inboxes_.erase(address);
  boxes_.erase(address);
}

class ThreadMessages final : public Wire::Messages {
 public:
  ThreadMessages(PostOffice& office, int rank) : office_(office), rank_(rank) {}
  ~ThreadMessages() override {
    for (const Message& m : messages_) {
      if (m.done) continue;
      if (m.letter)
        office_.take_back(m.letter);
      else
        office_.forget(m.address, m.receiver);
    }
  }
  bool test() override {
    bool all = true;
    for (Message& m : messages_) {
      if (!m.done && m.letter) m.done = office_.taken(*m.letter);
      if (!m.done && !m.letter) take(m);
      all &= m.done;
    }
    return all;
  }
  bool done(size_t i) const override { return messages_[i].done; }
  size_t arrived(size_t i) const override { return messages_[i].arrived; }

 private:
  struct Message {
    PostOffice::Address address;
    std::span<std::byte> room = {};
    std::shared_ptr<PostOffice::Letter> letter = {};  // only for a send
    uint64_t receiver = 0;
    bool exact = false, done = false;
    size_t arrived = 0;
  };
  // Every send is complete only when it is taken.
  void post_send(const void* data, size_t bytes, int to, int tag, bool) override {
    Message& m = messages_.emplace_back(Message{.address = {rank_, to, tag}});
    m.letter = office_.post(m.address, {static_cast<const std::byte*>(data), bytes});
  }
  void post_receive(void* data, size_t room, int from, int tag, bool exactly) override {
    Message& m = messages_.emplace_back(Message{.address = {from, rank_, tag},
                                                .room = {static_cast<std::byte*>(data), room},
                                                .exact = exactly});
    m.receiver = office_.expect(m.address);
  }
  void take(Message& m) {
    const auto taken = office_.take(m.address, m.receiver, m.room);
    if (!taken) return;
    if (m.exact && taken->bytes != m.room.size())
      throw CommError(other_size(member(m.address.from), taken->bytes, m.room.size()));
    m.done = true;
    m.arrived = taken->bytes;
  }
  PostOffice& office_;
  int rank_;
  std::vector<Message> messages_;
};

class ThreadInbox final : public Wire::Inbox {
 public:
  ThreadInbox(PostOffice& office, int rank, size_t room, int tag)
      : office_(office), address_{PostOffice::kAnybody, rank, tag}, room_(room) {
    office_.open_inbox(address_);
  }
  ~ThreadInbox() override { office_.close_inbox(address_); }
  std::optional<Letter> next() override {
    const auto taken = office_.take(address_, 0, room_);
    if (!taken) return std::nullopt;
    return Letter{taken->from, std::span(room_).first(taken->bytes)};
  }

 private:
  PostOffice& office_;
  PostOffice::Address address_;
  std::vector<std::byte> room_;
};

std::unique_ptr<Wire::Messages> PostOffice::messages(int rank) {
  return std::make_unique<ThreadMessages>(*this, rank);
}

std::unique_ptr<Wire::Inbox> PostOffice::inbox(int rank, size_t room, int tag) {
  return std::make_unique<ThreadInbox>(*this, rank, room, tag);
}

}  // namespace tutti::comm
