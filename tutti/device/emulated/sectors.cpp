#include "tutti/device/emulated/sectors.h"

#include <algorithm>

#include "tutti/device/emulated/thread_code.h"

namespace tutti::device {

void SectorCounter::begin_block(unsigned threads) {
  accesses_.assign(threads, {});
  touches_.clear();
}

void SectorCounter::count(unsigned thread, Access access, const void* at, size_t bytes) {
  const auto kind = static_cast<size_t>(access);
  const uint64_t of_warp =
      uint64_t{thread / kWarp} << 33 | uint64_t{kind} << 32 | accesses_[thread][kind]++;
  const auto first = reinterpret_cast<uintptr_t>(at), last = first + bytes - 1;
  for (uintptr_t s = first / SectorCounts::kBytes; s <= last / SectorCounts::kBytes; ++s)
    touches_.push_back({of_warp, s});
  counts_.bytes += static_cast<int64_t>(bytes);
}

void SectorCounter::end_block() {
  std::ranges::sort(touches_);
  const auto repeated = std::ranges::unique(touches_);
  counts_.sectors += repeated.begin() - touches_.begin();
}

}  // namespace tutti::device
