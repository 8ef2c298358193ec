#pragma once
// Sectors: memory of a device moves in pieces of 32 bytes, so an access of a warp costs as many as
// its lanes touch together.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::device {

struct SectorCounts {
  int64_t bytes = 0;                     ///< that threads read and wrote
  int64_t sectors = 0;                   ///< that their warps moved
  static constexpr int64_t kBytes = 32;  ///< bytes of a sector
};

/// Counts the accesses of blocks, one block after the other. The n-th accesses of the lanes of a
/// warp are taken for one access; so lanes that leave one out are counted at worst too high.
class SectorCounter {
 public:
  void begin_block(unsigned threads);
  void count(unsigned thread, const void* at, size_t bytes);
  void end_block();
  const SectorCounts& counts() const { return counts_; }

 private:
  struct Touch {
    uint64_t access, sector;
    auto operator<=>(const Touch&) const = default;
  };
  std::vector<uint32_t> accesses_;  // accesses of each thread so far
  std::vector<Touch> touches_;
  SectorCounts counts_;
};

}  // namespace tutti::device
