#include "tutti/comm/transport/routed_channel.h"

#include <algorithm>
#include <iterator>

#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/shm/shared_channel.h"

namespace tutti::comm {

RoutedChannel::RoutedChannel(const Communicator& communicator,
                             const std::shared_ptr<Mailboxes>& near, const Open& far,
                             std::vector<RoundOfMessages> rounds, ChannelNumbers& numbers)
    : neighbours_(communicator.neighbours()), numbers_(numbers), number_(numbers.take()) {
  Parts parts = parts_of(rounds);
  if (parts.has_near)
    near_ = std::make_unique<SharedChannel>(communicator, neighbours_, near, std::move(parts.near),
                                            number_);
  if (parts.has_far) far_ = far(std::move(parts.far), number_);
  if (!near_ || !far_) return;
  for (const RoundOfMessages& round : rounds) {
    std::vector<Way>& ways = ways_.emplace_back();
    size_t near_ones = 0, far_ones = 0;
    for (const auto& item : round.receives) {
      const bool is_near = neighbours_.index(item.peer) >= 0;
      ways.push_back({is_near, is_near ? near_ones++ : far_ones++});
    }
  }
}

RoutedChannel::~RoutedChannel() {
  using End = ChannelNumbers::End;
  const bool any = near_ != nullptr || far_ != nullptr;
  near_.reset();
  far_.reset();
  numbers_.close(number_, !any ? End::silent : complete_ ? End::complete : End::abandoned, runs_);
}

RoutedChannel::Parts RoutedChannel::parts_of(const std::vector<RoundOfMessages>& rounds) const {
  Parts parts;
  for (const RoundOfMessages& round : rounds) {
    RoundOfMessages& near = parts.near.emplace_back();
    RoundOfMessages& far = parts.far.emplace_back();
    near.may_borrow = far.may_borrow = round.may_borrow;
    near.until_taken = far.until_taken = round.until_taken;
    const auto deal = [&](const auto& items, auto& near_items, auto& far_items) {
      for (const auto& item : items)
        (neighbours_.index(item.peer) >= 0 ? near_items : far_items).push_back(item);
    };
    deal(round.receives, near.receives, far.receives);
    deal(round.sends, near.sends, far.sends);
    parts.has_near |= !near.receives.empty() || !near.sends.empty();
    parts.has_far |= !far.receives.empty() || !far.sends.empty();
  }
  return parts;
}

void RoutedChannel::rebind(std::vector<RoundOfMessages> rounds) {
  Parts parts = parts_of(rounds);
  if (near_) near_->rebind(std::move(parts.near));
  if (far_) far_->rebind(std::move(parts.far));
}

void RoutedChannel::expect() {
  if (!far_) return;
  complete_ = false;
  far_->expect();
}

void RoutedChannel::post(size_t round) {
  round_ = round;
  complete_ = false;
  if (round == 0) ++runs_;
  if (far_) far_->post(round);  // first: the wire takes longer
  if (near_) near_->post(round);
}

// Both are called, because each call makes progress.
bool RoutedChannel::received() {
  const bool far = !far_ || far_->received();
  return (!near_ || near_->received()) && far;
}

const std::byte* RoutedChannel::where(size_t i) const {
  if (!far_) return near_->where(i);
  if (!near_) return far_->where(i);
  const Way& way = ways_[round_][i];
  return (way.near ? near_ : far_)->where(way.index);
}

void RoutedChannel::release() {
  if (near_) near_->release();
  if (far_) far_->release();
}

bool RoutedChannel::sent() {
  const bool far = !far_ || far_->sent();
  const bool all = (!near_ || near_->sent()) && far;
  if (all && !complete_) complete_ = received();
  return all;
}

// Between hosts the wire is busy; messages that neighbours have yet to read delay nothing.
size_t RoutedChannel::leaving() { return far_ ? far_->leaving() : near_ ? near_->leaving() : 0; }

Channel::Missing RoutedChannel::missing() const {
  Missing all;
  for (const auto* part : {near_.get(), far_.get()}) {
    if (part == nullptr) continue;
    const Missing some = part->missing();
    std::ranges::copy(some.not_arrived, std::back_inserter(all.not_arrived));
    std::ranges::copy(some.not_taken, std::back_inserter(all.not_taken));
  }
  return all;
}

}  // namespace tutti::comm
