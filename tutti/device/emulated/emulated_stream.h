#pragma once
// Streams, events and recordings of the emulated device.

#include <memory>
#include <string_view>

#include "tutti/device/emulated/emulation.h"

namespace tutti::device {

struct EmulatedEvent final : Event {
  std::shared_ptr<Moment> last;  ///< null: it was never recorded
};

class EmulatedRecording final : public Recording {
 public:
  explicit EmulatedRecording(std::shared_ptr<const RecordedWork> recorded);
  size_t launches() const override { return launches_; }
  const std::shared_ptr<const RecordedWork>& recorded() const { return recorded_; }

 private:
  std::shared_ptr<const RecordedWork> recorded_;
  size_t launches_ = 0;
};

class EmulatedStream final : public Stream {
 public:
  EmulatedStream(Emulation& device, std::string_view name)
      : device_(device), queue_(device.make_queue(name)) {}
  ~EmulatedStream() override { device_.close(queue_); }
  EmulatedStream(const EmulatedStream&) = delete;
  EmulatedStream& operator=(const EmulatedStream&) = delete;

  std::string_view name() const override { return queue_->name; }
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, std::byte value, size_t bytes) override;
  void launch(const Launch& launch) override;
  void host(std::shared_ptr<HostWork> work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void replay(const Recording& recording) override;

 private:
  Emulation& device_;
  std::shared_ptr<Queue> queue_;
};

}  // namespace tutti::device
