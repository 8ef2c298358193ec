#include "tutti/device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

#include "tutti/base/error.h"
#include "tutti/device/cuda/cuda_error.h"
#include "tutti/device/cuda/cuda_facts.h"
#include "tutti/device/cuda/cuda_stream.h"
#include "tutti/device/cuda/libraries/libraries.h"

namespace tutti::device {
namespace {

using Clock = std::chrono::steady_clock;

/// A wait looks at its event without a pause at first, because most are short.
constexpr auto kWithoutPause = std::chrono::microseconds(50), kPause = kWithoutPause;

DeviceFacts facts_of(int number) {
  const int count = cuda_device_count();
  if (number < 0 || number >= count)
    throw DeviceError(fmt::format(
        "{}: there is no device cuda:{}: this process may see {}, cuda:0 to cuda:{} ({}): give "
        "each rank of the node a device of its own, by the scheduler or by that variable",
        host_words(), number, count, count - 1, visible_words()));
  return cuda_facts(number);
}

}  // namespace

CudaDevice::CudaDevice(int number, std::span<const DeviceFunction> functions)
    : facts_(facts_of(number)), functions_(functions), words_(device_words(number, facts_.name)),
      energy_(cuda_bus(number)), joules_at_start_(energy_.joules()) {
  enter();
  check(cudaFree(nullptr), "opening it");
  cudaFuncAttributes attributes;
  if (!functions.empty())
    check(cudaFuncGetAttributes(&attributes, functions.front().entry), "loading the kernel",
          functions.front().name);
}

CudaDevice::~CudaDevice() {
  const Clock::time_point begin = Clock::now();
  for (end_host_work(); !put_.calls.empty() && lost_.empty(); end_host_work()) {
    if (Clock::now() - begin > std::chrono::duration<double>(time_limit)) break;
    std::this_thread::sleep_for(kPause);
  }
  // A device that is lost may still call what is left: that lives on.
  if (!put_.calls.empty()) std::ignore = std::make_unique<PutWork>(std::move(put_)).release();
  if (!lost_.empty()) std::ignore = libraries_.release();  // their end might wait for ever
}

std::unique_ptr<Stream> CudaDevice::make_stream(std::string_view name) {
  return std::make_unique<CudaStream>(*this, name);
}

std::unique_ptr<Event> CudaDevice::make_event() { return std::make_unique<CudaEvent>(*this); }

void CudaDevice::wait(Event& event, std::string_view what) {
  ++waits_;
  const Clock::time_point begin = Clock::now();
  while (!done(event)) {
    const Clock::duration waited = Clock::now() - begin;
    if (waited > std::chrono::duration<double>(time_limit)) {
      lost_ = fmt::format(
          "{}: {} has not come to its end within {} s: the device hangs, or other processes keep "
          "it (nvidia-smi shows them; dmesg, lines with Xid): start the run again",
          words_, what, time_limit);
      throw DeviceError(lost_);
    }
    if (waited > kWithoutPause) std::this_thread::sleep_for(kPause);
  }
  end_host_work();
  try {
    host_failure_->rethrow();
  } catch (const std::exception& failed) {
    lost_ = fmt::format("{}: it is not used any more, because host work has failed: {}", words_,
                        failed.what());
    throw;
  } catch (...) {
    lost_ = words_ + ": it is not used any more, because host work has failed";
    throw;
  }
}

bool CudaDevice::done(Event& event) {
  enter();
  const cudaError_t state = cudaEventQuery(static_cast<CudaEvent&>(event).handle());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(state, "waiting for its work");
  return true;
}

size_t CudaDevice::free_bytes() {
  enter();
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return free;
}

DeviceCounts CudaDevice::counts() const {
  return {.waits = waits_,
          .launches = put_.launches,
          .copies = put_.copies,
          .copied_bytes = put_.copied_bytes,
          .host_work = put_.host_work,
          .replays = put_.replays,
          .bytes = bytes_,
          .most_bytes = most_bytes_};
}

Libraries* CudaDevice::libraries() {
  if (!libraries_) libraries_ = std::make_unique<CudaLibraries>(*this);
  return libraries_.get();
}

double CudaDevice::joules() {
  const double now = energy_.joules();
  return now < 0 || joules_at_start_ < 0 ? -1 : now - joules_at_start_;
}

void CudaDevice::enter() {
  if (!lost_.empty()) throw DeviceError(lost_);
  check(cudaSetDevice(facts_.number), "choosing it");
}

void CudaDevice::check(cudaError_t error, std::string_view doing, std::string_view subject) {
  if (error == cudaSuccess) return;
  try {
    device::check(error, words_,
                  subject.empty() ? std::string(doing) : fmt::format("{} '{}'", doing, subject));
  } catch (const DeviceError& failed) {
    if (!is_lost(error)) throw;
    lost_ = fmt::format(
        "{}. Work that the device was given before has failed, and no call of this process can "
        "use it any more: start the run again",
        failed.what());
    throw DeviceError(lost_);
  }
}

PutWork& CudaDevice::put_on(cudaStream_t stream) {
  if (!recorded_) return put_;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "asking whether work is recorded");
  return status == cudaStreamCaptureStatusNone ? put_ : *recorded_;
}

void CudaDevice::begin_recording() {
  CHECK(!recorded_, "two recordings at a time");
  recorded_ = std::make_unique<PutWork>();
}

std::byte* CudaDevice::allocate(size_t bytes, MemoryKind kind) {
  enter();
  void* data = nullptr;
  const cudaError_t error = kind == MemoryKind::device
                                ? cudaMalloc(&data, bytes)
                                : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) refuse_memory(bytes, kind);
  check(error, "allocating", mib(bytes));
  if (kind == MemoryKind::device) most_bytes_ = std::max(most_bytes_, bytes_ += bytes);
  return static_cast<std::byte*>(data);
}

void CudaDevice::refuse_memory(size_t bytes, MemoryKind kind) {
  cudaGetLastError();
  if (kind == MemoryKind::pinned)
    throw DeviceError(fmt::format(
        "{}: {} of the host's memory cannot be pinned for it: the host, or the limit of its "
        "container or job, has no memory left",
        words_, mib(bytes)));
  throw DeviceError(fmt::format(
      "{}: it has no {} for the run: {} of {} are free, and {} are the run's already. plan.memory "
      "limits what is kept, and computes the rest again with the same bits; a smaller batch.local "
      "with batch.accumulate makes the same update; other processes on it (nvidia-smi) take the "
      "rest",
      words_, mib(bytes), mib(free_bytes()), mib(facts_.memory_bytes), mib(bytes_)));
}

void CudaDevice::release(std::byte* data, size_t bytes, MemoryKind kind) noexcept {
  if (kind == MemoryKind::device) bytes_ -= bytes;
  if (!lost_.empty()) return;  // it might wait for ever
  if (kind == MemoryKind::device) {
    cudaFree(data);
  } else {
    cudaFreeHost(data);
  }
}

void CudaDevice::end_host_work() {
  put_.calls.remove_if([](const HostCall& call) { return call.has_run(); });
}

}  // namespace tutti::device
