#include "tutti/plan/run/bound_mirrors.h"

#include "tutti/base/error.h"

namespace tutti::plan {

size_t BoundMirrors::bytes_of(Base base) const {
  switch (base) {
    case kParameters: return variables_.parameter_bytes;
    case kTables: return variables_.table_bytes;
    case kStatistics: return variables_.statistic_bytes;
    case kState: return variables_.trained_bytes * variables_.state_kinds.size();
    default: break;
  }
  CHECK(false, "base {} has no mirror", static_cast<int>(base));
}

std::byte* BoundMirrors::bind(Base base, void* host) {
  const auto [at, added] = held_.try_emplace(host);
  Held& held = at->second;
  if (added) {
    held.base = base;
    held.mirror = mirrors_.of(static_cast<std::byte*>(host), bytes_of(base));
  }
  bound_[base] = &held;
  return held.mirror->data();
}

void BoundMirrors::note_host_changes() {
  for (auto& [host, held] : held_) held.stale = true;
}

void BoundMirrors::upload(device::Stream& stream) {
  for (Held* const held : bound_) {
    if (!held || !held->stale) continue;
    mirrors_.upload(*held->mirror, stream);
    held->stale = false;
  }
}

void BoundMirrors::note_written(Base base) {
  if (Held* const held = bound_[base]) held->mirror->device_is_newer = true;
}

void BoundMirrors::download(device::Stream& stream, Kept what) {
  for (auto& [host, held] : held_)
    if (what == Kept::all || held.base == kStatistics) mirrors_.download(*held.mirror, stream);
}

}  // namespace tutti::plan
