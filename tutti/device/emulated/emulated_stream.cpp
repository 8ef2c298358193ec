#include "tutti/device/emulated/emulated_stream.h"

#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/device/emulated/grid.h"

namespace tutti::device {

EmulatedRecording::EmulatedRecording(std::shared_ptr<const RecordedWork> recorded)
    : recorded_(std::move(recorded)) {
  for (const RecordedWork::Branch& branch : recorded_->branches)
    for (const Work& work : branch.work)
      launches_ +=
          !std::holds_alternative<RecordWork>(work) && !std::holds_alternative<WaitWork>(work);
}

void EmulatedStream::copy(void* to, const void* from, size_t bytes) {
  device_.begin_call("a copy");
  if (bytes == 0) return;
  device_.check_memory(to, bytes, "a copy's target");
  device_.check_memory(from, bytes, "a copy's source");
  const auto *const target = static_cast<std::byte*>(to), *const source =
                                                              static_cast<const std::byte*>(from);
  if (target < source + bytes && source < target + bytes)
    throw DeviceError(
        fmt::format("emulated device: a copy of {} bytes on stream '{}' from {} to "
                    "{}, which overlap",
                    bytes, name(), from, to));
  device_.put(queue_, CopyWork{to, from, bytes});
}

void EmulatedStream::fill(void* to, std::byte value, size_t bytes) {
  device_.begin_call("a fill");
  if (bytes == 0) return;
  device_.check_memory(to, bytes, "a fill's target");
  device_.put(queue_, FillWork{to, value, bytes});
}

void EmulatedStream::launch(const Launch& launch) {
  device_.begin_call(launch.function->name);
  check_launch(launch);
  const auto* const arguments = static_cast<const std::byte*>(launch.arguments);
  device_.put(queue_, KernelWork{*launch.function,
                                 launch.grid,
                                 {arguments, arguments + launch.function->argument_bytes}});
}

void EmulatedStream::host(std::shared_ptr<HostWork> work) {
  device_.begin_call("host work");
  device_.put(queue_, HostFunctionWork{std::move(work)});
}

void EmulatedStream::record(Event& event) {
  device_.begin_call("recording an event");
  static_cast<EmulatedEvent&>(event).last = device_.record(queue_);
}

void EmulatedStream::wait(const Event& event) {
  device_.begin_call("waiting for an event on a stream");
  if (const auto& last = static_cast<const EmulatedEvent&>(event).last) device_.wait(queue_, last);
}

void EmulatedStream::begin_recording() {
  device_.begin_call("beginning a recording");
  device_.begin_recording(queue_);
}

std::unique_ptr<Recording> EmulatedStream::end_recording() {
  return std::make_unique<EmulatedRecording>(device_.end_recording(queue_));
}

void EmulatedStream::replay(const Recording& recording) {
  device_.begin_call("a replay");
  device_.put(queue_, ReplayWork{static_cast<const EmulatedRecording&>(recording).recorded()});
}

}  // namespace tutti::device
