#include "tutti/capi/remote/service.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tutti/comm/communicator.h"

namespace tutti::capi::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookForOrigins = std::chrono::milliseconds(200);  // between two checks for origins
                                                                  // that are gone
constexpr auto kLeave = std::chrono::seconds(1);
constexpr Answer kGo = Answer::go;

// Whether data move between the origin's memory and this rank's without a copy on the way.
bool straight(const Request& request) {
  return !goes_behind(request) && (request.access == Access::put || request.access == Access::get);
}

void raise_to(std::atomic<size_t>& most, size_t value) {
  if (value > most.load(std::memory_order_relaxed)) most.store(value, std::memory_order_relaxed);
}

}  // namespace

Service::Service(const Ways& ways, OwnMemory& own, std::unique_ptr<comm::Wire::Inbox> inbox)
    : comm::Operation(ways.communicator, "requests of other ranks"), ways_(ways), own_(own),
      inbox_(std::move(inbox)) {}

Service::~Service() { withdraw(); }

bool Service::advance() {
  take_requests();
  drop_lost();
  room_wanted_ = false;
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    if (!step(*slot)) {
      ++slot;
      continue;
    }
    room_ -= slot->room_bytes;
    slot = slots_.erase(slot);
  }
  return false;
}

void Service::take_requests() {
  while (slots_.size() < kSlots) {
    const auto letter = inbox_->next();
    if (!letter) return;
    Slot slot{.origin = letter->from, .request = {}, .since = Clock::now()};
    slot.answers = ways_.messages();
    const bool whole = letter->data.size() >= sizeof slot.request;
    if (whole) std::memcpy(&slot.request, letter->data.data(), sizeof slot.request);
    const auto behind = letter->data.subspan(whole ? sizeof slot.request : 0);
    const bool brings = brings_data(slot.request.access) && goes_behind(slot.request);
    if (!whole || behind.size() != (brings ? slot.request.bytes : 0)) {
      slot.request.access = Access{255};  // no valid access
    } else if (goes_behind(slot.request)) {
      slot.room = std::make_unique_for_overwrite<std::byte[]>(slot.request.bytes);
      std::ranges::copy(behind, slot.room.get());
    }
    slots_.insert(std::ranges::find_if(slots_,
                                       [&](const Slot& other) {
                                         return other.request.priority < slot.request.priority;
                                       }),
                  std::move(slot));
    raise_to(most_slots_, slots_.size());
  }
}

// Requests of a rank that is gone will not be finished; others need their slots.
void Service::drop_lost() {
  if (slots_.empty()) return;
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookForOrigins;
  std::erase_if(slots_, [&](const Slot& slot) {
    if (now - slot.since < kLookForOrigins || ways_.lost(slot.origin).empty()) return false;
    room_ -= slot.room_bytes;
    return true;
  });
}

bool Service::step(Slot& slot) {
  const Request& request = slot.request;
  if (slot.stage == Stage::admit && !admit(slot)) return false;
  if (slot.stage == Stage::take) {
    if (!slot.transfer->advance()) return false;
    slot.transfer.reset();
    slot.stage = straight(request) ? Stage::answer : Stage::apply;
  }
  if (slot.stage == Stage::apply) {
    if (!own_.apply(request, slot.room.get())) return false;
    slot.stage = Stage::answer;
  }
  if (slot.stage == Stage::answer) {
    const bool returns = returns_data(request.access), behind = returns && goes_behind(request);
    answer(slot, Answer::done, slot.room.get(), behind ? request.bytes : 0);
    if (returns && !behind) begin_transfer(slot, Transfer::Way::send);
    slot.stage = Stage::leave;
  }
  const bool answered = slot.answers->test();
  return (!slot.transfer || slot.transfer->advance()) && answered;
}

// Returns false while there is no space for its data. A request that lacks space goes before all
// later ones.
bool Service::admit(Slot& slot) {
  const Request& request = slot.request;
  const auto refuse = [&] {
    answer(slot, Answer::refused, nullptr, 0);
    slot.stage = Stage::leave;
    return true;
  };
  if (!refusal_of(request, own_.memory().size()).empty()) return refuse();
  slot.stage = Stage::apply;
  if (goes_behind(request)) return true;
  if (straight(request)) {
    slot.stage = Stage::answer;
  } else {
    room_wanted_ |= room_ > 0 && room_ + request.bytes > kRoom;
    slot.stage = Stage::admit;
    if (room_wanted_) return false;
    try {
      slot.room = std::make_unique_for_overwrite<std::byte[]>(request.bytes);
    } catch (const std::bad_alloc&) {
      return refuse();
    }
    slot.stage = Stage::apply;
    room_ += slot.room_bytes = request.bytes;
    raise_to(most_room_, room_);
  }
  if (!brings_data(request.access)) return true;
  begin_transfer(slot, Transfer::Way::receive);  // before data can come
  slot.answers->send(&kGo, sizeof kGo, slot.origin, ways_.to_origin);
  slot.stage = Stage::take;
  return true;
}

void Service::answer(Slot& slot, Answer text, const std::byte* data, size_t bytes) {
  slot.note.write(text, data, bytes);
  slot.answers->send(slot.note.data(), slot.note.size(), slot.origin, ways_.to_origin);
}

void Service::begin_transfer(Slot& slot, Transfer::Way way) {
  const std::span<std::byte> data = straight(slot.request)
                                        ? own_.part(slot.request)
                                        : std::span(slot.room.get(), slot.request.bytes);
  const int tag = way == Transfer::Way::send ? ways_.to_origin : ways_.to_target;
  slot.transfer = std::make_unique<Transfer>(
      way, data, Transfer::Route{ways_.messages, slot.origin, tag}, pacer(), slot.request.priority);
}

bool Service::finish() {
  withdraw();
  const auto until = Clock::now() + kLeave;
  while (!slots_.empty() && Clock::now() < until) {
    if (std::ranges::any_of(slots_, [](const Slot& s) { return s.stage != Stage::leave; })) break;
    std::erase_if(slots_, [this](Slot& slot) { return step(slot); });
  }
  return slots_.empty();
}

comm::Pending Service::describe() const {
  comm::Pending what{.operation = name(), .sequence = sequence(), .arrived = {}, .missing = {}};
  for (const Slot& slot : slots_) what.missing.push_back(slot.origin);
  return what;
}

}  // namespace tutti::capi::remote
