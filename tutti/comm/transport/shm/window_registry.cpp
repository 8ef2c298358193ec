#include "tutti/comm/transport/shm/window_registry.h"

namespace tutti::comm {

void WindowRegistry::add(uint64_t id, const Window* window) {
  const std::lock_guard lock(mutex_);
  windows_[id] = window;
  ++version_;
}

void WindowRegistry::remove(uint64_t id) {
  const std::lock_guard lock(mutex_);
  windows_.erase(id);
  ++version_;
}

std::optional<WindowRegistry::Location> WindowRegistry::locate(const std::byte* data,
                                                               size_t bytes) const {
  if (same_process_) return Location{kSameProcess, 0, reinterpret_cast<uint64_t>(data)};
  const std::lock_guard lock(mutex_);
  for (const auto& [id, window] : windows_)
    if (window->contains(data, bytes))
      return Location{id, static_cast<uint64_t>(window->index()),
                      static_cast<uint64_t>(data - window->data())};
  return std::nullopt;
}

const std::byte* WindowRegistry::address(const Location& location, size_t bytes) const {
  if (same_process_)
    return location.window == kSameProcess ? reinterpret_cast<const std::byte*>(location.offset)
                                           : nullptr;
  const std::lock_guard lock(mutex_);
  const auto at = windows_.find(location.window);
  if (at == windows_.end()) return nullptr;
  const Window& window = *at->second;
  if (location.member >= static_cast<uint64_t>(window.neighbours().size())) return nullptr;
  const std::span<std::byte> part = window.part(static_cast<int>(location.member));
  if (location.offset > part.size() || bytes > part.size() - location.offset) return nullptr;
  return part.data() + location.offset;
}

}  // namespace tutti::comm
