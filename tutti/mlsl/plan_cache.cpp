#include "tutti/mlsl/plan_cache.h"

#include <algorithm>

#include "tutti/mlsl/request.h"

namespace tutti::mlsl {
namespace {

constexpr size_t kEntries = 64;
constexpr size_t kBytes = size_t{512} << 20;  // for all long vectors together

// Returns how many requests of one signature may be in flight: more of small ones, which a program
// may start in large numbers.
size_t slots_of(size_t bytes) {
  return std::clamp((size_t{4} << 20) / std::max<size_t>(bytes, 1), size_t{2}, size_t{16});
}

}  // namespace

PlanCache::~PlanCache() = default;

std::unique_ptr<Request> PlanCache::start(const comm::CollectiveSpec& spec,
                                          const InputAndOutput& buffers) {
  std::vector<size_t> parts;
  for (const comm::Slice& part : spec.parts) parts.push_back(part.count);
  Slot& slot =
      slot_for({spec.kind, spec.element, spec.op, spec.count, spec.root, std::move(parts)}, spec);
  slot.planned->start(buffers);
  return std::make_unique<Request>(shared_from_this(), slot);
}

PlanCache::Slot& PlanCache::slot_for(const Signature& signature, const comm::CollectiveSpec& spec) {
  Entry& entry = entries_[signature];
  entry.bytes = spec.count * comm::size_of(spec.element);
  entry.last = ++starts_;
  const size_t k = entry.starts % slots_of(entry.bytes);
  if (k == entry.slots.size()) {
    auto slot = std::make_unique<Slot>();
    slot->planned = std::make_unique<Planned>(*group_, spec);  // throws on all ranks, or on none
    entry.slots.push_back(std::move(slot));
    make_room(signature);
  }
  ++entry.starts;
  Slot& slot = *entry.slots[k];
  if (slot.user != nullptr) slot.user->wait();
  return slot;
}

void PlanCache::release(Entry& entry) {
  for (const auto& slot : entry.slots)
    if (slot->user != nullptr) slot->user->wait();
}

// Uses only numbers that are the same on all ranks, so that all drop the same entry.
void PlanCache::make_room(const Signature& needed) {
  const auto total = [&] {
    size_t bytes = 0;
    for (const auto& [signature, entry] : entries_) bytes += entry.kept();
    return bytes;
  };
  while (entries_.size() > 1 && (entries_.size() > kEntries || total() > kBytes)) {
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& item) { return item.second.last; });
    if (oldest->first == needed) return;
    release(oldest->second);
    entries_.erase(oldest);
  }
}

}  // namespace tutti::mlsl
