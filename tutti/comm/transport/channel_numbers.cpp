#include "tutti/comm/transport/channel_numbers.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::comm {

int ChannelNumbers::take() {
  ++taken_;
  const auto free = std::ranges::find(marks_, kFree);
  if (free == marks_.end()) {
    marks_.push_back(kOpen);
    return static_cast<int>(marks_.size()) - 1;
  }
  *free = kOpen;
  return static_cast<int>(free - marks_.begin());
}

void ChannelNumbers::close(int number, End end, uint64_t runs) {
  const auto n = static_cast<size_t>(number);
  if (n >= marks_.size()) return;  // of a plan that was undone
  marks_[n] = end == End::abandoned ? kOpen
              : end == End::silent  ? kSilent
                                    : static_cast<uint8_t>(1 + runs % (kFree - 1));
}

uint8_t ChannelNumbers::fold(uint8_t mine, uint8_t theirs) {
  if (mine == theirs || theirs == kSilent) return mine;
  return mine == kSilent ? theirs : kOpen;
}

void ChannelNumbers::settle(std::span<const uint8_t> all) {
  CHECK(all.size() == marks_.size());
  for (size_t n = 0; n < all.size(); ++n) {
    if (all[n] == kOpen || marks_[n] == kFree) continue;
    marks_[n] = kFree;
    --taken_;
  }
  while (!marks_.empty() && marks_.back() == kFree) marks_.pop_back();
  bound_ = std::max(kLeastBound, 2 * taken_);
}

}  // namespace tutti::comm
