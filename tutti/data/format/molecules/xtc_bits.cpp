#include "tutti/data/format/molecules/xtc_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

using Sizes = std::array<uint32_t, 3>;
using Atom3 = std::array<int64_t, 3>;
__extension__ using uint128 = unsigned __int128;  // three integers of 24 bits form one of 72

/// 2^(place / 3), as the format defines it: some entries are not rounded.
constexpr std::array<int32_t, kXtcSmallSizes> kSmallSizes = {
    0,        0,        0,       0,       0,       0,       0,       0,       0,       8,
    10,       12,       16,      20,      25,      32,      40,      50,      64,      80,
    101,      128,      161,     203,     256,     322,     406,     512,     645,     812,
    1024,     1290,     1625,    2048,    2580,    3250,    4096,    5060,    6501,    8192,
    10321,    13003,    16384,   20642,   26007,   32768,   41285,   52015,   65536,   82570,
    104031,   131072,   165140,  208063,  262144,  330280,  416127,  524287,  660561,  832255,
    1048576,  1321122,  1664510, 2097152, 2642245, 3329021, 4194304, 5284491, 6658042, 8388607,
    10568983, 13316085, 16777216};

constexpr uint32_t kMostJoined = 0xffffff;

/// Reads bits from the highest of each byte on. Beyond the end it gives zeros and sets overrun().
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// Takes up to 32 bits, the highest first.
  uint32_t take(int bits) {
    while (held_ < bits) {
      window_ = window_ << 8 | (at_ < bytes_.size() ? bytes_[at_] : 0);
      ++at_;
      held_ += 8;
    }
    held_ -= bits;
    return static_cast<uint32_t>(window_ >> held_ & ((uint64_t{1} << bits) - 1));
  }
  bool overrun() const { return at_ > bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  uint64_t window_ = 0;
  int held_ = 0;
};

uint32_t size_along(const XtcPacking& packing, size_t axis) {
  return static_cast<uint32_t>(int64_t{packing.greatest[axis]} - packing.least[axis] + 1);
}

class XtcUnpacker {
 public:
  XtcUnpacker(const XtcPacking& packing, std::span<const uint8_t> bytes, std::span<int32_t> out)
      : bits_(bytes), out_(out), small_(packing.small) {
    for (size_t axis = 0; axis < 3; ++axis) {
      least_[axis] = packing.least[axis];
      sizes_[axis] = size_along(packing, axis);
    }
    joined_ = *std::ranges::max_element(sizes_) <= kMostJoined;
    if (joined_) large_bits_ = xtc_bits_of(sizes_);
  }

  std::string run() {
    uint32_t run = 0;  // small atoms after each large one
    while (at_ < out_.size()) {
      Atom3 atom = large();
      int change = 0;
      if (bits_.take(1) == 1) {
        const uint32_t word = bits_.take(5);
        run = word / 3;
        change = static_cast<int>(word % 3) - 1;
      }
      if (run * 3 > out_.size() - at_ - 3) return "has more atoms than it announces";
      Atom3 before = atom;
      for (uint32_t k = 0; k < run; ++k) {
        const Atom3 next = small(before);
        before = next;
        put(next);
        if (k == 0) put(atom);
      }
      if (run == 0) put(atom);
      if (bits_.overrun()) return "has fewer bits than its atoms need";
      if (!sound_) return "has an integer beyond its bounds";
      small_ += change;
      if (small_ < kXtcFirstSmall || small_ >= kXtcSmallSizes) return "has a size beyond the table";
    }
    return {};
  }

 private:
  /// Reads three integers below `sizes` that form one number of `bits` bits.
  Atom3 joined(int bits, const Sizes& sizes) {
    uint128 number = 0;
    for (int shift = 0; shift < bits; shift += 8)
      number |= uint128{bits_.take(std::min(8, bits - shift))} << shift;
    Atom3 three{};
    if (bits <= 64) {
      three = parts(static_cast<uint64_t>(number), sizes);
    } else {
      three = parts(number, sizes);
    }
    sound_ &= three[0] < sizes[0];
    return three;
  }

  template <class Number>
  static Atom3 parts(Number number, const Sizes& sizes) {
    Atom3 three{};
    for (size_t axis = 2; axis > 0; --axis) {
      three[axis] = static_cast<int64_t>(number % sizes[axis]);
      number /= sizes[axis];
    }
    three[0] = static_cast<int64_t>(number);
    return three;
  }

  Atom3 large() {
    Atom3 atom{};
    if (joined_) {
      atom = joined(large_bits_, sizes_);
    } else {
      for (size_t axis = 0; axis < 3; ++axis) {
        atom[axis] = bits_.take(std::bit_width(sizes_[axis]));
        sound_ &= atom[axis] < sizes_[axis];
      }
    }
    for (size_t axis = 0; axis < 3; ++axis) atom[axis] += least_[axis];
    return atom;
  }

  Atom3 small(const Atom3& before) {
    const int32_t size = xtc_small_size(small_);
    const auto same = static_cast<uint32_t>(size);
    Atom3 atom = joined(small_, {same, same, same});
    for (size_t axis = 0; axis < 3; ++axis) atom[axis] += before[axis] - size / 2;
    return atom;
  }

  void put(const Atom3& atom) {
    for (const int64_t x : atom) {
      sound_ &= x >= INT32_MIN && x <= INT32_MAX;
      out_[at_++] = static_cast<int32_t>(x);
    }
  }

  BitReader bits_;
  std::span<int32_t> out_;
  size_t at_ = 0;
  Atom3 least_{};
  Sizes sizes_{};
  bool joined_ = true, sound_ = true;
  int large_bits_ = 0, small_ = 0;
};

}  // namespace

int32_t xtc_small_size(int place) { return kSmallSizes[static_cast<size_t>(place)]; }

int xtc_bits_of(const std::array<uint32_t, 3>& sizes) {
  const uint128 product = uint128{sizes[0]} * sizes[1] * sizes[2];
  const auto upper = static_cast<uint64_t>(product >> 64);
  return upper > 0 ? 64 + std::bit_width(upper) : std::bit_width(static_cast<uint64_t>(product));
}

std::string check_xtc_packing(const XtcPacking& packing) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t size = int64_t{packing.greatest[axis]} - packing.least[axis] + 1;
    if (size < 1 || size > UINT32_MAX)
      return fmt::format("has integers from {} to {} along an axis", packing.least[axis],
                         packing.greatest[axis]);
  }
  if (packing.small < kXtcFirstSmall || packing.small >= kXtcSmallSizes)
    return fmt::format("begins with the small size {}, expected {} to {}", packing.small,
                       kXtcFirstSmall, kXtcSmallSizes - 1);
  return {};
}

std::string unpack_xtc(const XtcPacking& packing, std::span<const uint8_t> bytes,
                       std::span<int32_t> out) {
  CHECK(out.size() % 3 == 0, "{} integers", out.size());
  if (std::string wrong = check_xtc_packing(packing); !wrong.empty()) return wrong;
  return XtcUnpacker(packing, bytes, out).run();
}

}  // namespace tutti::data
