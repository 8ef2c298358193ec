#include "tutti/comm/transport/shm/mailboxes.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::comm {

Mailboxes::Room::Room(std::shared_ptr<Mailboxes> owner, size_t bytes)
    : owner_(std::move(owner)), bytes_(bytes), data_(owner_->arena_.take(bytes)) {
  if (data_ != nullptr) return;
  owner_->waiting_.push_back(this);
  owner_->lacking_ += Arena::rounded(bytes);
}

Mailboxes::Room::~Room() {
  if (data_ == nullptr) {
    std::erase(owner_->waiting_, this);
    owner_->lacking_ -= Arena::rounded(bytes_);
  } else if (!abandoned_) {
    owner_->arena_.give_back(data_, bytes_);
  }
}

Mailboxes::Mailboxes(int neighbours, int self, std::shared_ptr<const WindowRegistry> registry)
    : neighbours_(static_cast<size_t>(neighbours)), self_(self), registry_(std::move(registry)) {}

Mailbox& Mailboxes::box(int number, int owner, int peer) const {
  const auto n = static_cast<size_t>(number);
  const std::lock_guard lock(mutex_);
  auto* const first = reinterpret_cast<Mailbox*>(boxes_[n / kNumbers]->part(owner).data());
  return first[n % kNumbers * neighbours_ + static_cast<size_t>(peer)];
}

void Mailboxes::provide(size_t numbers, bool rooms, const Allocate& allocate) {
  while (!has_boxes(numbers)) {
    auto window = allocate(kNumbers * neighbours_ * sizeof(Mailbox));
    const std::lock_guard lock(mutex_);
    boxes_.push_back(std::move(window));
  }
  if (!rooms) return;
  const size_t more =
      lacking_ == 0 ? 0 : std::max(lacking_, std::clamp(arena_bytes_, kLeastArena, kMostArena));
  arenas_.push_back(allocate(more));
  arena_bytes_ += more;
  arena_.add({arenas_.back()->data(), more});
  for (Room* const room : waiting_) {
    room->data_ = arena_.take(room->bytes_);
    CHECK(room->data_ != nullptr);
  }
  waiting_.clear();
  lacking_ = 0;
}

}  // namespace tutti::comm
