#include "tutti/plan/run/pass_slots.h"

#include <utility>

#include "tutti/plan/memory.h"

namespace tutti::plan {

PassSlots::PassSlots(device::Device& device, const SlotBytes& bytes)
    : device_(device), bytes_(bytes), copies_(device.make_stream("copies")) {
  size_t all = 0;
  for (const auto part : {&SlotBytes::pass_inputs, &SlotBytes::update_inputs, &SlotBytes::numbers,
                          &SlotBytes::results}) {
    places_.*part = all;
    all += aligned(bytes.*part);
  }
  for (Slot& slot : slots_) {
    slot.pinned = device::Memory(device, all, device::MemoryKind::pinned);
    slot.inputs = device::Memory(device, bytes.pass_inputs);
    slot.sent = device.make_event();
    slot.over = device.make_event();
  }
}

void PassSlots::turn() {
  current_ = next();
  if (done(current_)) return;
  ++waits_;
  wait(current_, "the pass before the last one");
}

void PassSlots::send_inputs(device::Stream& compute) {
  if (bytes_.pass_inputs == 0) return;
  Slot& slot = slots_[at(current_)];
  copies_->copy(slot.inputs.data(), slot.pinned.data(), bytes_.pass_inputs);
  copies_->record(*slot.sent);
  compute.wait(*slot.sent);
}

void PassSlots::close(device::Stream& compute) {
  Slot& slot = slots_[at(current_)];
  compute.record(*slot.over);
  slot.used = true;
}

bool PassSlots::done(int slot) {
  Slot& asked = slots_[at(slot)];
  return !asked.used || device_.done(*asked.over);
}

void PassSlots::wait(int slot, std::string_view what) {
  device_.wait(*slots_[at(slot)].over, what);
}

}  // namespace tutti::plan
