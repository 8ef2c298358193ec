#pragma once
// A GPU by the CUDA runtime. Its calls may come from any thread, one at a time.

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tutti/device/cuda/nvml.h"
#include "tutti/device/cuda/put_work.h"
#include "tutti/device/device.h"
#include "tutti/device/libraries.h"

namespace tutti::device {

/// Ends what the CUDA runtime has made; whether that succeeds nobody can know.
template <auto End>
struct EndedBy {
  template <class T>
  void operator()(T* handle) const {
    End(handle);
  }
};
using StreamHandle = std::unique_ptr<CUstream_st, EndedBy<cudaStreamDestroy>>;
using EventHandle = std::unique_ptr<CUevent_st, EndedBy<cudaEventDestroy>>;
using GraphHandle = std::unique_ptr<CUgraph_st, EndedBy<cudaGraphDestroy>>;
using ReplayHandle = std::unique_ptr<CUgraphExec_st, EndedBy<cudaGraphExecDestroy>>;

class CudaDevice : public Device {
 public:
  /// Opens device `number` among those that this process may see. `functions` live as long as the
  /// program. Throws DeviceError if there is no such device, if it is in use by another process
  /// alone, if it has no memory left, or if the functions were not built for it.
  CudaDevice(int number, std::span<const DeviceFunction> functions);
  /// Waits for host work that is under way, unless the device is lost.
  ~CudaDevice() override;

  const DeviceFacts& facts() const override { return facts_; }
  std::unique_ptr<Stream> make_stream(std::string_view name) override;
  std::unique_ptr<Event> make_event() override;
  void wait(Event& event, std::string_view what) override;
  bool done(Event& event) override;
  size_t free_bytes() override;
  DeviceCounts counts() const override;
  std::span<const DeviceFunction> functions() const override { return functions_; }
  Libraries* libraries() override;
  double joules() override;

  // For its streams and libraries.

  /// Returns the device as errors name it.
  const std::string& words() const { return words_; }

  /// Begins a call: throws if the device is lost, and makes it the thread's.
  void enter();
  /// Throws DeviceError if a call has failed, and remembers if the device is lost.
  void check(cudaError_t error, std::string_view doing, std::string_view subject = {});
  /// Returns where work that is put on a stream is counted: at the recording that it goes into, or
  /// at the device.
  PutWork& put_on(cudaStream_t stream);
  const std::shared_ptr<HostFailure>& host_failure() { return host_failure_; }
  /// There is one recording at a time.
  void begin_recording();
  std::unique_ptr<PutWork> end_recording() { return std::move(recorded_); }

 protected:
  std::byte* allocate(size_t bytes, MemoryKind kind) override;
  void release(std::byte* data, size_t bytes, MemoryKind kind) noexcept override;

 private:
  [[noreturn]] void refuse_memory(size_t bytes, MemoryKind kind);
  void end_host_work();

  DeviceFacts facts_;
  std::span<const DeviceFunction> functions_;
  std::string words_;  // the device, in errors
  std::string lost_;   // why no call can succeed any more
  NvmlDevice energy_;
  double joules_at_start_ = 0;
  std::shared_ptr<HostFailure> host_failure_ = std::make_shared<HostFailure>();
  PutWork put_;
  std::unique_ptr<PutWork> recorded_;  // while there is a recording
  int64_t waits_ = 0;
  size_t bytes_ = 0, most_bytes_ = 0;
  std::unique_ptr<Libraries> libraries_;  // opened when they are first asked for
};

}  // namespace tutti::device
