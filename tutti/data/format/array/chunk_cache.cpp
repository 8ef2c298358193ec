#include "tutti/data/format/array/chunk_cache.h"

namespace tutti::data {

ChunkCache::Bytes ChunkCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->chunk;
}

void ChunkCache::keep(const Key& key, Bytes chunk) {
  const std::lock_guard lock(mutex_);
  if (places_.contains(key)) return;  // another reader was faster
  bytes_ += std::ssize(*chunk);
  entries_.push_front({key, std::move(chunk)});
  places_[key] = entries_.begin();
  while (bytes_ > most_ && entries_.size() > 1) {
    bytes_ -= std::ssize(*entries_.back().chunk);
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

int64_t ChunkCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tutti::data
