#include "tutti/comm/transport/shm/shared_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {
namespace {

uint64_t load(uint64_t& flag) { return std::atomic_ref(flag).load(std::memory_order_acquire); }
void publish(uint64_t& flag, uint64_t value) {
  std::atomic_ref(flag).store(value, std::memory_order_release);
}

}  // namespace

SharedChannel::SharedChannel(const Communicator& communicator, const Neighbours& neighbours,
                             std::shared_ptr<Mailboxes> mailboxes,
                             std::vector<RoundOfMessages> rounds, int number)
    : communicator_(communicator), mailboxes_(std::move(mailboxes)), rounds_(std::move(rounds)),
      number_(number), peers_(static_cast<size_t>(neighbours.size())) {
  size_t bytes = 0;
  for (size_t r = 0; r < rounds_.size(); ++r) bytes = std::max(bytes, reserve(r, neighbours));
  for (const Peer& peer : peers_)
    if (peer.most > Mailbox::kInside) bounce_ += peer.most * sizeof(MessageDescriptor);
  bounce_ = Arena::rounded(bounce_);
  if (bounce_ + bytes > 0) room_ = std::make_unique<Mailboxes::Room>(mailboxes_, bounce_ + bytes);
}

SharedChannel::~SharedChannel() {
  if (settled_ && room_ && (open_ || !sent())) room_->abandon();
}

void SharedChannel::rebind(std::vector<RoundOfMessages> rounds) {
  rounds_ = std::move(rounds);
  if (settled_) place();
}

// Reserves space for the blocks of a round that peers cannot see, now or later; returns its bytes.
size_t SharedChannel::reserve(size_t r, const Neighbours& neighbours) {
  size_t bounce = 0;
  const auto index = [&](int rank) { return static_cast<size_t>(neighbours.index(rank)); };
  std::vector<Outgoing>& outgoing = outgoing_.emplace_back();
  std::vector<size_t> count(peers_.size());
  for (const auto& item : rounds_[r].sends) {
    Outgoing& out = outgoing.emplace_back();
    out.peer = index(item.peer);
    out.descriptor.bytes = item.bytes;
    out.bounce = bounce;
    peers_[out.peer].most = std::max(peers_[out.peer].most, ++count[out.peer]);
    moves_ |= item.moves;
    out.roomy =
        item.bytes > 0 && (item.moves || !mailboxes_->registry().locate(item.data, item.bytes));
    if (out.roomy) bounce += Arena::rounded(item.bytes);
  }
  std::ranges::fill(count, 0);
  std::vector<Incoming>& incoming = incoming_.emplace_back();
  for (const auto& item : rounds_[r].receives) {
    const size_t peer = index(item.peer);
    incoming.push_back({peer, count[peer]++});
  }
  return bounce;
}

void SharedChannel::place() {
  placed_by_ = mailboxes_->registry().version();
  for (size_t r = 0; r < rounds_.size(); ++r) place(r);
}

// Decides where peers read the blocks of a round.
void SharedChannel::place(size_t r) {
  const auto& sends = rounds_[r].sends;
  std::vector<Outgoing>& outgoing = outgoing_[r];
  const WindowRegistry& registry = mailboxes_->registry();
  for (size_t i = 0; i < sends.size(); ++i) {
    Outgoing& out = outgoing[i];
    if (sends[i].bytes == 0) continue;
    const auto location = registry.locate(sends[i].data, sends[i].bytes);
    out.copied = !location;
    if (out.copied && !out.roomy)
      throw CommError(
          "a buffer was in shared memory when the operation was planned, and that memory has been "
          "let go");
    out.descriptor.location =
        location ? *location
                 : registry.locate(room_->data() + bounce_ + out.bounce, sends[i].bytes).value();
    for (size_t j = 0; j < i && out.copied; ++j)
      if (outgoing[j].copied && sends[j].data == sends[i].data && sends[j].bytes == sends[i].bytes)
        out.copied = false, out.descriptor = outgoing[j].descriptor;
  }
}

// Takes over the boxes as the previous channel left them: counts go on.
void SharedChannel::settle() {
  settled_ = true;
  auto* more = room_ ? reinterpret_cast<MessageDescriptor*>(room_->data()) : nullptr;
  for (size_t p = 0; p < peers_.size(); ++p) {
    Peer& peer = peers_[p];
    peer.mine = &mailboxes_->mine(number_, static_cast<int>(p));
    peer.theirs = &mailboxes_->of_peer(number_, static_cast<int>(p));
    peer.sent = peer.mine->posted;
    peer.taken = peer.mine->taken;
    if (peer.most == 0) continue;
    const bool inside = peer.most <= Mailbox::kInside;
    peer.slots = inside ? peer.mine->inside : more;
    peer.mine->slots = inside ? Mailbox::kInside : peer.most;
    if (inside) continue;
    const size_t bytes = peer.most * sizeof(MessageDescriptor);
    peer.mine->elsewhere =
        mailboxes_->registry().locate(reinterpret_cast<std::byte*>(more), bytes).value();
    more += peer.most;
  }
  place();
}

void SharedChannel::post(size_t round) {
  if (!settled_) settle();
  // Buffers may have come back at the same address in another window, without a call of rebind().
  else if (moves_ && round == 0 && placed_by_ != mailboxes_->registry().version())
    place();
  round_ = round;
  arrived_ = 0;
  open_ = true;
  const RoundOfMessages& messages = rounds_[round];
  where_.assign(messages.receives.size(), nullptr);
  for (size_t i = 0; i < messages.sends.size(); ++i) {
    const auto& item = messages.sends[i];
    const Outgoing& out = outgoing_[round][i];
    if (out.copied) std::memcpy(room_->data() + bounce_ + out.bounce, item.data, item.bytes);
    Peer& peer = peers_[out.peer];
    peer.slots[peer.sent % peer.mine->slots] = out.descriptor;
    publish(peer.mine->posted, ++peer.sent);
  }
}

void SharedChannel::take(size_t i) {
  const auto& item = rounds_[round_].receives[i];
  const Incoming& incoming = incoming_[round_][i];
  Peer& peer = peers_[incoming.peer];
  const uint64_t number = peer.taken + incoming.number_in_round;
  const Mailbox& box = *peer.theirs;
  const WindowRegistry& registry = mailboxes_->registry();
  const auto* slots = box.inside;
  const uint64_t count = std::min<uint64_t>(box.slots, UINT32_MAX);  // a peer may send any value
  if (count != Mailbox::kInside)
    slots = reinterpret_cast<const MessageDescriptor*>(
        registry.address(box.elsewhere, count * sizeof(MessageDescriptor)));
  const auto fail_unseen = [&] {
    throw CommError(fmt::format("{} sent from memory that this rank does not have, or has let go",
                                communicator_.rank_name(item.peer)));
  };
  if (slots == nullptr || count == 0) fail_unseen();
  const MessageDescriptor& message = slots[number % count];
  if (message.bytes != item.bytes)
    throw CommError(
        fmt::format("{} sent {} bytes where {} were expected; all ranks need the same "
                    "configuration and the same program",
                    communicator_.rank_name(item.peer), message.bytes, item.bytes));
  static constexpr std::byte kNothing{};  // an address for messages without bytes
  const std::byte* const data =
      item.bytes == 0 ? &kNothing : registry.address(message.location, item.bytes);
  if (data == nullptr) fail_unseen();
  where_[i] = data;
  if (rounds_[round_].may_borrow) return;
  if (item.bytes > 0) {
    std::memcpy(item.data, data, item.bytes);
    where_[i] = item.data;
  }
  // A count, not this message's number: of two that arrive together the second may be seen first.
  publish(peer.mine->taken, peer.mine->taken + 1);
}

bool SharedChannel::received() {
  const std::vector<RoundOfMessages::Item>& receives = rounds_[round_].receives;
  if (arrived_ == receives.size()) return true;
  for (size_t i = 0; i < receives.size(); ++i) {
    if (where_[i] != nullptr) continue;
    const Incoming& incoming = incoming_[round_][i];
    const Peer& peer = peers_[incoming.peer];
    if (load(peer.theirs->posted) <= peer.taken + incoming.number_in_round) continue;
    take(i);
    ++arrived_;
  }
  return arrived_ == receives.size();
}

void SharedChannel::release() {
  if (!open_) return;
  open_ = false;
  for (const Incoming& incoming : incoming_[round_]) ++peers_[incoming.peer].taken;
  if (!rounds_[round_].may_borrow) return;
  for (const Incoming& incoming : incoming_[round_]) {
    const Peer& peer = peers_[incoming.peer];
    publish(peer.mine->taken, peer.taken);
  }
}

bool SharedChannel::sent() {
  for (const Outgoing& out : outgoing_[round_]) {
    const Peer& peer = peers_[out.peer];
    if (load(peer.theirs->taken) < peer.sent) return false;
  }
  return true;
}

size_t SharedChannel::leaving() {
  size_t bytes = 0;
  if (!sent())
    for (const Outgoing& out : outgoing_[round_]) bytes += out.descriptor.bytes;
  return bytes;
}

Channel::Missing SharedChannel::missing() const {
  Missing missing;
  const RoundOfMessages& messages = rounds_[round_];
  for (size_t i = 0; i < messages.receives.size(); ++i)
    if (open_ && where_[i] == nullptr) missing.not_arrived.push_back(messages.receives[i].peer);
  for (size_t i = 0; i < messages.sends.size(); ++i) {
    const Peer& peer = peers_[outgoing_[round_][i].peer];
    if (load(peer.theirs->taken) < peer.sent) missing.not_taken.push_back(messages.sends[i].peer);
  }
  return missing;
}

}  // namespace tutti::comm
