#pragma once
// Counters for kernels in which the block that comes last ends what all have begun (comes_last() in
// device_code.h).

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tutti/backend/backend.h"

namespace tutti::backend {

/// The counters of a kernel's groups of blocks, which are all its numbers
/// (Kernel::write_numbers()) or the first of them.
class BlockCounters {
 public:
  BlockCounters() = default;  ///< none
  explicit BlockCounters(int64_t groups) : groups_(groups) {}
  /// Returns a multiple of 16.
  size_t bytes() const { return (static_cast<size_t>(groups_) * sizeof(unsigned) + 15) / 16 * 16; }
  /// Lets them begin at 0.
  void write(std::byte* to) const { std::memset(to, 0, bytes()); }
  /// Returns them in memory of the device; null if there are none.
  unsigned* in(const KernelArgs& args) const {
    return groups_ > 0 ? reinterpret_cast<unsigned*>(args.numbers) : nullptr;
  }

 private:
  int64_t groups_ = 0;
};

}  // namespace tutti::backend
