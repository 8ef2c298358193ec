#pragma once
// OwnMemory: the memory that a rank exposes, and the one place where accumulates change it.
// Internal to capi/remote.

#include <atomic>
#include <cstdint>
#include <semaphore>
#include <span>

#include "tutti/capi/remote/request.h"

namespace tutti::capi::remote {

/// Thread-safe.
class OwnMemory {
 public:
  /// Both arguments outlive this.
  OwnMemory(comm::Communicator& communicator, std::span<std::byte> memory)
      : communicator_(communicator), memory_(memory) {}

  std::span<std::byte> memory() const { return memory_; }
  std::span<std::byte> part(const Request& request) const {
    return memory_.subspan(request.offset, request.bytes);
  }
  /// Does the whole request, which fits, between this memory and `data`, which holds whole elements
  /// at their alignment. Returns false, and does nothing, while another request is being done or
  /// the memory is held. Never waits.
  bool apply(const Request& request, std::byte* data);
  /// Returns how many accumulates and fetches have been applied.
  uint64_t accumulates() const { return accumulates_.load(std::memory_order_acquire); }

  /// Lets nothing be applied until release(). Waits for a request that another thread is applying.
  void hold() { free_.acquire(); }
  void release() { free_.release(); }

 private:
  void compute(const Request& request, std::byte* data, size_t begin, size_t count);
  comm::Communicator& communicator_;
  std::span<std::byte> memory_;
  std::binary_semaphore free_{1};
  std::atomic<uint64_t> accumulates_{0};
};

}  // namespace tutti::capi::remote
