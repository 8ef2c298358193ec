#include "tutti/comm/bootstrap/store.h"

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
  if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                         [&] { return values_.contains(key); }))
    return std::nullopt;
  return values_[key];
}

}  // namespace tutti::comm
