#include "tutti/comm/shm/shared_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/message_slots.h"

namespace tutti::comm {
namespace {

uint64_t load(uint64_t& flag) { return std::atomic_ref(flag).load(std::memory_order_acquire); }
void publish(uint64_t& flag, uint64_t value) {
  std::atomic_ref(flag).store(value, std::memory_order_release);
}
size_t whole_lines(size_t bytes) { return (bytes + 127) / 128 * 128; }

}  // namespace

SharedChannel::SharedChannel(Communicator& communicator,
                             std::shared_ptr<const WindowRegistry> registry,
                             std::vector<RoundOfMessages> rounds)
    : communicator_(communicator), registry_(std::move(registry)), rounds_(std::move(rounds)) {
  slots_ = message_slots(communicator, rounds_);
  const auto ranks = static_cast<size_t>(communicator.size());
  sent_.resize(ranks);
  taken_.resize(ranks);
  size_t bounce_bytes = 0;
  for (size_t r = 0; r < rounds_.size(); ++r) bounce_bytes = std::max(bounce_bytes, reserve(r));
  window_ = communicator.allocate(ranks * box_bytes() + bounce_bytes);
  CHECK(window_->shared());
  bounce_ = window_->data() + ranks * box_bytes();
  for (size_t r = 0; r < rounds_.size(); ++r) place(r);
}

void SharedChannel::rebind(std::vector<RoundOfMessages> rounds) {
  rounds_ = std::move(rounds);
  for (size_t r = 0; r < rounds_.size(); ++r) place(r);
}

// Room for the blocks of a round that are, or may come to be, where peers cannot see them: how many
// bytes.
size_t SharedChannel::reserve(size_t r) {
  size_t bounce = 0;
  std::vector<Outgoing>& outgoing = outgoing_.emplace_back();
  for (const auto& item : rounds_[r].sends) {
    outgoing.push_back({.descriptor = {.location = {}, .bytes = item.bytes}, .bounce = bounce});
    if (item.bytes > 0 && (item.moves || !registry_->locate(item.data, item.bytes)))
      bounce += whole_lines(item.bytes);
  }
  std::map<int, uint64_t> count;
  std::vector<uint64_t>& numbers = number_in_round_.emplace_back();
  for (const auto& item : rounds_[r].receives) numbers.push_back(count[item.peer]++);
  return bounce;
}

// Where peers read the blocks of a round.
void SharedChannel::place(size_t r) {
  const auto& sends = rounds_[r].sends;
  std::vector<Outgoing>& outgoing = outgoing_[r];
  for (size_t i = 0; i < sends.size(); ++i) {
    Outgoing& out = outgoing[i];
    if (sends[i].bytes == 0) continue;
    const auto location = registry_->locate(sends[i].data, sends[i].bytes);
    out.copied = !location;
    out.descriptor.location =
        location ? *location : registry_->locate(bounce_ + out.bounce, sends[i].bytes).value();
    for (size_t j = 0; j < i && out.copied; ++j)
      if (outgoing[j].copied && sends[j].data == sends[i].data && sends[j].bytes == sends[i].bytes)
        out.copied = false, out.descriptor = outgoing[j].descriptor;
  }
}

size_t SharedChannel::box_bytes() const {
  return sizeof(Mailbox) + whole_lines(slots_ * sizeof(Descriptor));
}

SharedChannel::Mailbox& SharedChannel::box(int owner, int peer) const {
  return *reinterpret_cast<Mailbox*>(window_->peer(owner) +
                                     static_cast<size_t>(peer) * box_bytes());
}

SharedChannel::Descriptor* SharedChannel::slots(int owner, int peer) const {
  return reinterpret_cast<Descriptor*>(window_->peer(owner) +
                                       static_cast<size_t>(peer) * box_bytes() + sizeof(Mailbox));
}

void SharedChannel::post(size_t round) {
  round_ = round;
  arrived_ = 0;
  open_ = true;
  const int me = communicator_.rank();
  const RoundOfMessages& messages = rounds_[round];
  where_.assign(messages.receives.size(), nullptr);
  for (size_t i = 0; i < messages.sends.size(); ++i) {
    const auto& item = messages.sends[i];
    const Outgoing& out = outgoing_[round][i];
    if (out.copied) std::memcpy(bounce_ + out.bounce, item.data, item.bytes);
    uint64_t& number = sent_[static_cast<size_t>(item.peer)];
    slots(me, item.peer)[number % slots_] = out.descriptor;
    publish(box(me, item.peer).posted, ++number);
  }
}

void SharedChannel::take(size_t i) {
  const auto& item = rounds_[round_].receives[i];
  const uint64_t number = taken_[static_cast<size_t>(item.peer)] + number_in_round_[round_][i];
  const Descriptor& message = slots(item.peer, communicator_.rank())[number % slots_];
  if (message.bytes != item.bytes)
    throw CommError(
        fmt::format("{} sent {} bytes where {} were expected; all ranks need the same "
                    "configuration and the same program",
                    communicator_.rank_name(item.peer), message.bytes, item.bytes));
  static constexpr std::byte kNothing{};  // an address for messages without bytes
  const std::byte* const data =
      item.bytes == 0 ? &kNothing : registry_->address(message.location, item.bytes);
  if (data == nullptr)
    throw CommError(fmt::format("{} sent from memory that this rank does not have, or has let go",
                                communicator_.rank_name(item.peer)));
  where_[i] = data;
  if (rounds_[round_].may_borrow) return;
  if (item.bytes > 0) {
    std::memcpy(item.data, data, item.bytes);
    where_[i] = item.data;
  }
  // A count, not this message's number: of two that arrive together the second may be seen first.
  uint64_t& taken = box(communicator_.rank(), item.peer).taken;
  publish(taken, taken + 1);
}

bool SharedChannel::received() {
  const std::vector<RoundOfMessages::Item>& receives = rounds_[round_].receives;
  if (arrived_ == receives.size()) return true;
  const int me = communicator_.rank();
  for (size_t i = 0; i < receives.size(); ++i) {
    if (where_[i] != nullptr) continue;
    const int peer = receives[i].peer;
    if (load(box(peer, me).posted) <=
        taken_[static_cast<size_t>(peer)] + number_in_round_[round_][i])
      continue;
    take(i);
    ++arrived_;
  }
  return arrived_ == receives.size();
}

void SharedChannel::release() {
  if (!open_) return;
  open_ = false;
  const RoundOfMessages& messages = rounds_[round_];
  for (const auto& item : messages.receives) ++taken_[static_cast<size_t>(item.peer)];
  if (!messages.may_borrow) return;
  for (const auto& item : messages.receives)
    publish(box(communicator_.rank(), item.peer).taken, taken_[static_cast<size_t>(item.peer)]);
}

bool SharedChannel::sent() {
  for (const auto& item : rounds_[round_].sends)
    if (load(box(item.peer, communicator_.rank()).taken) < sent_[static_cast<size_t>(item.peer)])
      return false;
  return true;
}

std::vector<int> SharedChannel::missing() const {
  std::vector<int> not_arrived, not_taken;
  const RoundOfMessages& messages = rounds_[round_];
  for (size_t i = 0; i < messages.receives.size(); ++i)
    if (open_ && where_[i] == nullptr) not_arrived.push_back(messages.receives[i].peer);
  for (const auto& item : messages.sends)
    if (load(box(item.peer, communicator_.rank()).taken) < sent_[static_cast<size_t>(item.peer)])
      not_taken.push_back(item.peer);
  return missing_peers(messages, std::move(not_arrived), not_taken);
}

}  // namespace tutti::comm
