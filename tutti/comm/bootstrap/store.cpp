#include "tutti/comm/bootstrap/store.h"

#include <algorithm>
#include <chrono>

namespace tutti::comm {

void LocalStore::set(const std::string& key, const std::string& value) {
  {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::optional<std::string> LocalStore::get(const std::string& key, double seconds) {
  std::unique_lock lock(mutex_);
  // The steady clock cannot count longer than this.
  constexpr double kLongest = 1e9;
  if (!changed_.wait_for(lock, std::chrono::duration<double>(std::min(seconds, kLongest)),
                         [&] { return values_.contains(key); }))
    return std::nullopt;
  return values_[key];
}

}  // namespace tutti::comm
