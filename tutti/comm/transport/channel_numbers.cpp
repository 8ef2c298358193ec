#include "tutti/comm/transport/channel_numbers.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::comm {

int ChannelNumbers::take() {
  ++taken_;
  const auto first = marks_.begin() + static_cast<ptrdiff_t>(none_free_below_);
  const auto free = std::find(first, marks_.end(), kFree);
  const auto number = static_cast<size_t>(free - marks_.begin());
  none_free_below_ = number + 1;
  if (free == marks_.end())
    marks_.push_back(kOpen);
  else
    *free = kOpen;
  return static_cast<int>(number);
}

void ChannelNumbers::close(int number, End end, uint64_t runs) {
  const auto n = static_cast<size_t>(number);
  if (n >= marks_.size()) return;  // from a plan that was undone
  marks_[n] = end == End::abandoned ? kOpen : end == End::silent ? kSilent : 1 + runs;
}

uint64_t ChannelNumbers::fold(uint64_t mine, uint64_t theirs) {
  if (mine == theirs || theirs == kSilent) return mine;
  return mine == kSilent ? theirs : kOpen;
}

void ChannelNumbers::settle(std::span<const uint64_t> all) {
  CHECK(all.size() == marks_.size());
  for (size_t n = 0; n < all.size(); ++n) {
    if (all[n] == kOpen || marks_[n] == kFree) continue;
    marks_[n] = kFree;
    --taken_;
  }
  while (!marks_.empty() && marks_.back() == kFree) marks_.pop_back();
  bound_ = std::max(kLeastBound, 2 * taken_);
  none_free_below_ = 0;
}

}  // namespace tutti::comm
