#include "tutti/device/cuda/cuda_stream.h"

#include <utility>

#include "tutti/base/error.h"

namespace tutti::device {

CudaEvent::CudaEvent(CudaDevice& device) {
  device.enter();
  cudaEvent_t event = nullptr;
  device.check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  event_.reset(event);
}

CudaStream::CudaStream(CudaDevice& device, std::string_view name) : device_(device), name_(name) {
  device_.enter();
  cudaStream_t stream = nullptr;
  device_.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making the stream",
                name_);
  stream_.reset(stream);
}

CudaStream::~CudaStream() {
  if (!records_) return;  // else an error came between the two ends of a recording
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_.get(), &graph);
  GraphHandle{graph};
  device_.end_recording();
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  device_.enter();
  device_.check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()),
                "copying on stream", name_);
  PutWork& put = device_.put_on(stream_.get());
  ++put.copies;
  put.copied_bytes += static_cast<int64_t>(bytes);
}

void CudaStream::fill(void* to, std::byte value, size_t bytes) {
  if (bytes == 0) return;
  device_.enter();
  device_.check(cudaMemsetAsync(to, std::to_integer<int>(value), bytes, stream_.get()),
                "filling memory on stream", name_);
  ++device_.put_on(stream_.get()).fills;
}

void CudaStream::launch(const Launch& launch) {
  const DeviceFunction& function = *launch.function;
  device_.enter();
  // CUDA copies the argument, and takes it as one that it could write.
  void* argument = const_cast<void*>(launch.arguments);
  device_.check(cudaLaunchKernel(function.entry, dim3(launch.grid.x, launch.grid.y, launch.grid.z),
                                 dim3(function.threads), &argument, 0, stream_.get()),
                "launching", function.name);
  ++device_.put_on(stream_.get()).launches;
}

void CudaStream::host(std::shared_ptr<HostWork> work) {
  device_.enter();
  PutWork& put = device_.put_on(stream_.get());
  HostCall& call = put.calls.emplace_back(std::move(work), device_.host_failure());
  const cudaError_t error = cudaLaunchHostFunc(stream_.get(), HostCall::run, &call);
  if (error != cudaSuccess) put.calls.pop_back();
  device_.check(error, "putting host work on stream", name_);
  ++put.host_work;
}

void CudaStream::record(Event& event) {
  device_.enter();
  device_.check(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_.get()),
                "recording an event on stream", name_);
}

void CudaStream::wait(const Event& event) {
  device_.enter();
  device_.check(
      cudaStreamWaitEvent(stream_.get(), static_cast<const CudaEvent&>(event).handle(), 0),
      "waiting for an event on stream", name_);
}

void CudaStream::begin_recording() {
  device_.enter();
  device_.begin_recording();
  // Other threads may go on to use the device: for memory, or for streams of their own.
  const cudaError_t error = cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal);
  records_ = error == cudaSuccess;
  if (!records_) device_.end_recording();
  device_.check(error, "beginning to record stream", name_);
}

std::unique_ptr<Recording> CudaStream::end_recording() {
  CHECK(records_, "stream '{}' does not record", name_);
  device_.enter();
  records_ = false;
  std::unique_ptr<PutWork> recorded = device_.end_recording();
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream_.get(), &graph);
  const GraphHandle ended(graph);
  device_.check(error, "ending the recording of stream", name_);
  cudaGraphExec_t replay = nullptr;
  device_.check(cudaGraphInstantiate(&replay, graph, 0), "making the recording of stream", name_);
  return std::make_unique<CudaRecording>(ReplayHandle(replay), std::move(recorded));
}

void CudaStream::replay(const Recording& recording) {
  const auto& recorded = static_cast<const CudaRecording&>(recording);
  device_.enter();
  device_.check(cudaGraphLaunch(recorded.handle(), stream_.get()), "replaying on stream", name_);
  device_.put_on(stream_.get()).add_replay(recorded.recorded());
}

}  // namespace tutti::device
