#pragma once
// PassSlots: what passes and updates get from the host and give back to it, while both go on.

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "tutti/device/device.h"
#include "tutti/plan/device_memory.h"

namespace tutti::plan {

/// Bytes of a slot's parts.
struct SlotBytes {
  size_t pass_inputs = 0, update_inputs = 0;
  size_t numbers = 0;  ///< a pass's and those of the update after it
  size_t results = 0;
};

/// A few slots that passes use in turn, each with the update after it: pinned memory of the host
/// for inputs, numbers and results, and memory of the device for a pass's inputs. Inputs travel on
/// a stream of their own, so those of a pass while the device computes the one before. Not
/// thread-safe.
class PassSlots {
 public:
  static constexpr int kSlots = kPassSlots;

  PassSlots(device::Device& device, const SlotBytes& bytes);

  /// Turns to the next slot. Waits until the device is done with it.
  void turn();
  int current() const { return current_; }
  int next() const { return (current_ + 1) % kSlots; }

  // Pinned memory of the current slot. It may be written until the work that reads it is put on a
  // stream.
  std::byte* pass_inputs() { return pinned(); }
  std::byte* update_inputs() { return pass_inputs() + places_.update_inputs; }
  std::byte* numbers() { return pass_inputs() + places_.numbers; }
  std::byte* results() { return results_of(current_); }
  /// Results of any slot may be read once done() or after wait().
  std::byte* results_of(int slot) { return slots_[at(slot)].pinned.data() + places_.results; }
  const std::byte* pass_inputs_of(int slot) const { return slots_[at(slot)].pinned.data(); }

  /// Returns where the device has the inputs of the current slot's pass.
  std::byte* device_inputs() { return slots_[at(current_)].inputs.data(); }
  /// Copies them there. Work that is put on `compute` from now on begins after that.
  void send_inputs(device::Stream& compute);

  /// Notes that all work so far on the stream uses the current slot.
  void close(device::Stream& compute);
  bool done(int slot);
  void wait(int slot, std::string_view what);

  /// Returns how often turn() has waited.
  int64_t waits() const { return waits_; }
  size_t device_bytes() const { return kSlots * bytes_.pass_inputs; }

 private:
  struct Slot {
    device::Memory pinned, inputs;
    std::unique_ptr<device::Event> sent, over;
    bool used = false;  // `over` was recorded
  };
  static size_t at(int slot) { return static_cast<size_t>(slot); }
  std::byte* pinned() { return slots_[at(current_)].pinned.data(); }

  device::Device& device_;
  const SlotBytes bytes_;
  SlotBytes places_;  // where the parts begin
  const std::unique_ptr<device::Stream> copies_;
  std::array<Slot, kSlots> slots_;
  int current_ = 0;
  int64_t waits_ = 0;
};

}  // namespace tutti::plan
