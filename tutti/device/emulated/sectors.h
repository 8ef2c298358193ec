#pragma once
// Sectors: memory of a device moves in pieces of 32 bytes, so an access of a warp costs as many as
// its lanes touch together.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::device {

struct SectorCounts {
  int64_t bytes = 0;                     ///< that threads read and wrote
  int64_t sectors = 0;                   ///< that their warps moved
  static constexpr int64_t kBytes = 32;  ///< bytes of a sector
};

enum class Access : uint8_t { read, write };

/// Counts the accesses of blocks, one block after the other. The n-th reads of the lanes of a warp
/// are taken for one access, and so are their n-th writes; so lanes that leave one out are counted
/// at worst too high.
class SectorCounter {
 public:
  void begin_block(unsigned threads);
  void count(unsigned thread, Access access, const void* at, size_t bytes);
  void end_block();
  const SectorCounts& counts() const { return counts_; }

 private:
  struct Touch {
    uint64_t access, sector;  // the access is that of a warp
    auto operator<=>(const Touch&) const = default;
  };
  std::vector<std::array<uint32_t, 2>> accesses_;  // those of each thread so far, by kind
  std::vector<Touch> touches_;
  SectorCounts counts_;
};

}  // namespace tutti::device
