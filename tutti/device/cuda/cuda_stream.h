#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "tutti/device/cuda/cuda_device.h"
#include "tutti/device/cuda/put_work.h"
#include "tutti/device/device.h"

namespace tutti::device {

class CudaEvent : public Event {
 public:
  explicit CudaEvent(CudaDevice& device);
  cudaEvent_t handle() const { return event_.get(); }

 private:
  EventHandle event_;
};

/// Must not end while a replay of it is under way.
class CudaRecording : public Recording {
 public:
  CudaRecording(ReplayHandle replay, std::unique_ptr<PutWork> recorded)
      : recorded_(std::move(recorded)), replay_(std::move(replay)) {}
  size_t launches() const override { return static_cast<size_t>(recorded_->all()); }
  const PutWork& recorded() const { return *recorded_; }
  cudaGraphExec_t handle() const { return replay_.get(); }

 private:
  std::unique_ptr<PutWork> recorded_;  // its host work is called by address
  ReplayHandle replay_;
};

/// A stream of CUDA that waits for no other one, unless it is told to.
class CudaStream : public Stream {
 public:
  CudaStream(CudaDevice& device, std::string_view name);
  ~CudaStream() override;

  std::string_view name() const override { return name_; }
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, std::byte value, size_t bytes) override;
  void launch(const Launch& launch) override;
  void host(std::shared_ptr<HostWork> work) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void begin_recording() override;
  std::unique_ptr<Recording> end_recording() override;
  void replay(const Recording& recording) override;
  void* native() override { return stream_.get(); }

 private:
  CudaDevice& device_;
  std::string name_;
  StreamHandle stream_;
  bool records_ = false;
};

}  // namespace tutti::device
