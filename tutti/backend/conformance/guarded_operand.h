#pragma once
// An operand in memory of the host. Private to op_run.cpp and device_run.cpp.

#include <array>

#include "tutti/device/cpu/buffer.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

constexpr size_t kGuard = 256;

/// These bytes stand around operands, over and over: as bf16 and as f32 it is a NaN, so that a
/// number read beyond an operand spoils any sum, whatever it is multiplied by; as i32 it is a large
/// number. No single byte but 0xFF, which spoils outputs, has that, and a copy of those should
/// show.
constexpr std::array kGuardBytes{std::byte{0xF1}, std::byte{0x7F}};

inline void put_guard(std::byte* to) {
  for (size_t i = 0; i < kGuard; ++i) to[i] = kGuardBytes[i % kGuardBytes.size()];
}
inline bool is_guard(const std::byte* at) {
  for (size_t i = 0; i < kGuard; ++i)
    if (at[i] != kGuardBytes[i % kGuardBytes.size()]) return false;
  return true;
}

/// One operand with guard bytes around it.
struct GuardedOperand {
  TensorDesc desc;
  bool batched;
  device::Buffer memory;

  GuardedOperand(const TensorDesc& d, bool b)
      : desc(d), batched(b), memory(d.bytes() + 2 * kGuard) {
    put_guard(memory.data());
    put_guard(data() + desc.bytes());
  }
  std::byte* data() const { return memory.data() + kGuard; }
  void* at_sample(int64_t first) const {
    return data() +
           (batched ? desc.bytes() / static_cast<size_t>(desc.shape[0]) * static_cast<size_t>(first)
                    : 0);
  }
  bool intact() const { return is_guard(memory.data()) && is_guard(data() + desc.bytes()); }
};

}  // namespace tutti::backend
