#pragma once
// The emulated device as its streams see it.

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/device/emulated/block.h"
#include "tutti/device/emulated/chance.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/device/emulated/emulated_memory.h"
#include "tutti/device/emulated/recorder.h"
#include "tutti/device/emulated/turns.h"
#include "tutti/device/emulated/work.h"

namespace tutti::device {

class Emulation final : public EmulatedDevice {
 public:
  explicit Emulation(const EmulatedOptions& options);

  const DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<Stream> make_stream(std::string_view name) override;
  std::unique_ptr<Event> make_event() override;
  void wait(Event& event, std::string_view what) override;
  bool done(Event& event) override;
  size_t free_bytes() override { return memory_.free_bytes(); }
  DeviceCounts counts() const override;
  std::span<const DeviceFunction> functions() const override { return options_.functions; }
  int64_t calls() const override { return calls_; }
  void count_sectors() override { sectors_.emplace(); }
  SectorCounts sectors() const override { return sectors_ ? sectors_->counts() : SectorCounts{}; }
  Libraries* libraries() override { return libraries_.get(); }
  void set_libraries(std::unique_ptr<Libraries> libraries) override {
    libraries_ = std::move(libraries);
  }

  // Called by streams:

  /// Begins a call that can fail. Throws DeviceError if it must not go on.
  void begin_call(std::string_view what);
  /// Throws DeviceError unless the bytes are memory of the device or pinned memory.
  void check_memory(const void* at, size_t bytes, std::string_view what) const;
  std::shared_ptr<Queue> make_queue(std::string_view name) { return turns_.add(name); }
  /// Ends a stream: its work is still done, but what it records is not.
  void close(const std::shared_ptr<Queue>& queue);
  void put(const std::shared_ptr<Queue>& queue, Work work);
  std::shared_ptr<Moment> record(const std::shared_ptr<Queue>& queue);
  void wait(const std::shared_ptr<Queue>& queue, const std::shared_ptr<Moment>& moment);
  void begin_recording(const std::shared_ptr<Queue>& queue);
  std::shared_ptr<const RecordedWork> end_recording(const std::shared_ptr<Queue>& queue);

 private:
  std::byte* allocate(size_t bytes, MemoryKind kind) override;
  void release(std::byte* data, size_t bytes, MemoryKind kind) noexcept override;
  /// Returns the moment that the host waits for; null: there is none.
  std::shared_ptr<Moment> awaited(Event& event) const;
  /// Does one piece of work. What it throws ends all work.
  void step();
  void run(const KernelWork& work);
  void run(const CopyWork& work);
  void run(const FillWork& work);
  void run(const HostFunctionWork& work);
  [[noreturn]] void fail();
  bool records(const std::shared_ptr<Queue>& queue) const {
    return recorder_ && recorder_->has(queue);
  }

  EmulatedOptions options_;
  std::unique_ptr<Libraries> libraries_;
  DeviceFacts facts_;
  EmulatedMemory memory_;
  Chance chance_;
  Turns turns_;
  Block block_;
  std::optional<SectorCounter> sectors_;
  std::optional<Recorder> recorder_;
  int64_t recordings_ = 0;  // begun so far
  int64_t calls_ = 0;
  DeviceCounts counts_;
  bool in_host_work_ = false;
  std::exception_ptr failure_;  // a failure of work, for the next wait
  std::string lost_;            // why there is no further work; empty: the device is there
};

}  // namespace tutti::device
