#pragma once
// An operand in memory of the host. Private to op_run.cpp and device_run.cpp.

#include <algorithm>
#include <cstring>

#include "tutti/device/cpu/buffer.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

constexpr size_t kGuard = 256;
constexpr std::byte kGuardByte{0xA5};

/// One operand with guard bytes around it.
struct GuardedOperand {
  TensorDesc desc;
  bool batched;
  device::Buffer memory;

  GuardedOperand(const TensorDesc& d, bool b)
      : desc(d), batched(b), memory(d.bytes() + 2 * kGuard) {
    std::fill_n(memory.data(), kGuard, kGuardByte);
    std::fill_n(data() + desc.bytes(), kGuard, kGuardByte);
  }
  std::byte* data() const { return memory.data() + kGuard; }
  void* at_sample(int64_t first) const {
    return data() +
           (batched ? desc.bytes() / static_cast<size_t>(desc.shape[0]) * static_cast<size_t>(first)
                    : 0);
  }
  bool intact() const {
    const auto untouched = [](const std::byte* guard) {
      return std::all_of(guard, guard + kGuard, [](std::byte b) { return b == kGuardByte; });
    };
    return untouched(memory.data()) && untouched(data() + desc.bytes());
  }
};

}  // namespace tutti::backend
