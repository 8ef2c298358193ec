#include "tutti/comm/places.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tutti::comm {

Places::Places(std::vector<Place> all, int mine) : all_(std::move(all)) {
  const Place& here = (*this)[mine];
  std::vector<int> neighbours, memories;
  for (int p = 0; p < static_cast<int>(all_.size()); ++p) {
    const Place& place = (*this)[p];
    memories.push_back(place.memory);
    if (place.memory == here.memory) neighbours.push_back(p);
    if (place.kernel == here.kernel) ++sharing_cores_;
    if (place.node != here.node) continue;
    if (p < mine) ++local_rank_;
    ++local_size_;
  }
  neighbours_ = std::make_shared<const Neighbours>(std::move(neighbours));
  std::ranges::sort(memories);
  shares_memory_ = std::ranges::adjacent_find(memories) != memories.end();
}

std::vector<int> Places::numbered(int Place::*what) const {
  std::vector<int> table;
  std::unordered_map<int, int> numbers;  // new number by the value of the field
  for (const Place& place : all_)
    table.push_back(
        numbers.try_emplace(place.*what, static_cast<int>(numbers.size())).first->second);
  if (numbers.size() == 1) table.clear();
  return table;
}

}  // namespace tutti::comm
