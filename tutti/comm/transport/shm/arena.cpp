#include "tutti/comm/transport/shm/arena.h"

#include <algorithm>
#include <iterator>

namespace tutti::comm {

void Arena::add(std::span<std::byte> memory) {
  if (const size_t bytes = memory.size() / kLine * kLine; bytes > 0)
    give_back(memory.data(), bytes);
}

std::byte* Arena::take(size_t bytes) {
  const size_t wanted = rounded(bytes);
  const auto fits =
      std::ranges::find_if(free_, [&](const auto& piece) { return piece.second >= wanted; });
  if (fits == free_.end()) return nullptr;
  const auto [data, found] = *fits;
  free_.erase(fits);
  if (found > wanted) free_[data + wanted] = found - wanted;
  return data;
}

void Arena::give_back(std::byte* data, size_t bytes) {
  auto at = free_.emplace(data, rounded(bytes)).first;
  if (const auto next = std::next(at);
      next != free_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

size_t Arena::free_bytes() const {
  size_t sum = 0;
  for (const auto& [data, bytes] : free_) sum += bytes;
  return sum;
}

}  // namespace tutti::comm
