#include "tutti/device/mirrors.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

constexpr size_t kStagingBytes = size_t{4} << 20;

/// Calls work(offset, bytes) for each piece that staging memory has space for.
template <class Work>
void for_pieces(size_t bytes, Work work) {
  for (size_t at = 0; at < bytes; at += kStagingBytes)
    work(at, std::min(kStagingBytes, bytes - at));
}

}  // namespace

Mirrors::Mirrors(Device& device) : device_(device) {}
Mirrors::~Mirrors() = default;

std::shared_ptr<Mirror> Mirrors::of(std::byte* host, size_t bytes) {
  std::erase_if(mirrors_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto same = mirrors_.find(host); same != mirrors_.end())
    if (auto mirror = same->second.lock(); mirror->bytes() == bytes) return mirror;
  for (const auto& [begin, entry] : mirrors_) {
    const size_t size = entry.lock()->bytes();
    CHECK(host + bytes <= begin || begin + size <= host,
          "memory of {} bytes is mirrored that overlaps a mirror of {} bytes", bytes, size);
  }
  auto mirror = std::make_shared<Mirror>(Mirror{.host = host, .memory = Memory(device_, bytes)});
  if (bytes > 0) mirrors_[host] = mirror;
  return mirror;
}

void Mirrors::upload(Mirror& mirror, Stream& stream) {
  if (!mirror.device_is_newer) to_device(mirror.data(), mirror.host, mirror.bytes(), stream);
}

void Mirrors::download(Mirror& mirror, Stream& stream) {
  if (!mirror.device_is_newer) return;
  to_host(mirror.host, mirror.data(), mirror.bytes(), stream);
  mirror.device_is_newer = false;
}

std::byte* Mirrors::staging() {
  if (staging_.bytes() == 0) staging_ = Memory(device_, kStagingBytes, MemoryKind::pinned);
  return staging_.data();
}

void Mirrors::to_device(std::byte* to, const std::byte* from, size_t bytes, Stream& stream) {
  for_pieces(bytes, [&](size_t at, size_t piece) {
    std::memcpy(staging(), from + at, piece);
    stream.copy(to + at, staging(), piece);
    settle(device_, stream, "a copy to the device");
  });
}

void Mirrors::to_host(std::byte* to, const std::byte* from, size_t bytes, Stream& stream) {
  for_pieces(bytes, [&](size_t at, size_t piece) {
    stream.copy(staging(), from + at, piece);
    settle(device_, stream, "a copy from the device");
    std::memcpy(to + at, staging(), piece);
  });
}

}  // namespace tutti::device
