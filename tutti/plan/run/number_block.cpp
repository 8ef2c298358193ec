#include "tutti/plan/run/number_block.h"

namespace tutti::plan {

NumberBlock::NumberBlock(device::Device& device, size_t bytes)
    : device_(device), block_(device, bytes) {
  for (Slot& slot : slots_) {
    slot.memory = device::Memory(device, bytes, device::MemoryKind::pinned);
    slot.sent = device.make_event();
  }
}

std::byte* NumberBlock::open() {
  Slot& slot = slots_[next_];
  if (slot.used && !device_.done(*slot.sent))
    device_.wait(*slot.sent, "a slot for the numbers of a step");
  slot.used = false;
  return slot.memory.data();
}

void NumberBlock::send(device::Stream& stream, size_t begin, size_t end) {
  Slot& slot = slots_[next_];
  stream.copy(block_.data() + begin, slot.memory.data() + begin, end - begin);
  stream.record(*slot.sent);
  slot.used = true;
  next_ = (next_ + 1) % slots_.size();
}

}  // namespace tutti::plan
