#pragma once
// Writes trajectories for tests as other programs do, byte by byte.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/array/unit_cell.h"
#include "tutti/data/format/molecules/xtc_bits.h"

namespace tutti::data {

/// Writes numbers in a byte order of the file's own.
class ByteWriter {
 public:
  explicit ByteWriter(bool big_endian = true) : big_endian_(big_endian) {}

  ByteWriter& whole(int64_t value, int bytes = 4) {
    for (int i = 0; i < bytes; ++i)
      bytes_.push_back(static_cast<uint8_t>(value >> 8 * (big_endian_ ? bytes - 1 - i : i)));
    return *this;
  }
  ByteWriter& f32(float x) { return whole(std::bit_cast<int32_t>(x)); }
  ByteWriter& f64(double x) { return whole(std::bit_cast<int64_t>(x), 8); }
  ByteWriter& text(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  ByteWriter& zeros(size_t bytes) {
    bytes_.resize(bytes_.size() + bytes);
    return *this;
  }
  ByteWriter& padded() { return zeros((4 - bytes_.size() % 4) % 4); }
  size_t size() const { return bytes_.size(); }
  const Bytes& bytes() const { return bytes_; }

 private:
  bool big_endian_;
  Bytes bytes_;
};

/// Returns x y z for atom after atom, frame after frame, in Angstrom: an irregular chain, whose
/// neighbouring atoms are about a bond apart.
inline std::vector<float> chain_coordinates(int64_t frames, int64_t atoms) {
  std::vector<float> xyz;
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t a = 0; a < atoms; ++a)
      for (int axis = 0; axis < 3; ++axis)
        xyz.push_back(static_cast<float>(
            std::round(100 * (a * (axis == 0 ? 1.1 : 0.4) + std::sin(a * (axis + 1) + 0.3 * f))) /
            100));
  return xyz;
}

struct DcdForm {
  bool big_endian = false, cell = true;
  std::vector<int32_t> free{};  ///< atoms that are not fixed, from 0 on; empty: no atom is fixed
  int dimensions = 3, version = 24;
  std::array<double, 3> lengths{}, angles{};  ///< alpha, beta, gamma
  std::array<double, 6> matrix{};             ///< instead of these, in the order of the file
  int marker = 4;                             ///< bytes of a record's length
  std::vector<std::string> titles = {""};
  int64_t title_length = -1;  ///< written length of the titles' record; -1: the true one
  int64_t announced = 0;      ///< frames
};

inline Bytes dcd_bytes(const std::vector<float>& xyz, int64_t atoms, const DcdForm& form = {}) {
  ByteWriter out(form.big_endian);
  const auto length = [&](int64_t bytes) { out.whole(bytes, form.marker); };
  const int64_t free = form.free.empty() ? atoms : std::ssize(form.free);
  length(84);
  out.text("CORD");
  for (int i = 0; i < 20; ++i)
    out.whole(i == 0    ? form.announced
              : i == 8  ? atoms - free
              : i == 10 ? form.cell
              : i == 11 ? form.dimensions - 3
              : i == 19 ? form.version
                        : 0);
  length(84);
  const int64_t titles = 4 + 80 * std::ssize(form.titles);
  length(form.title_length < 0 ? titles : form.title_length);
  out.whole(std::ssize(form.titles));
  for (std::string title : form.titles) {
    title.resize(80, ' ');
    out.text(title);
  }
  length(form.title_length < 0 ? titles : form.title_length);
  length(4);
  out.whole(atoms);
  length(4);
  if (free < atoms) {
    length(4 * free);
    for (const int32_t atom : form.free) out.whole(atom + 1);
    length(4 * free);
  }
  for (size_t at = 0; at < xyz.size(); at += static_cast<size_t>(3 * atoms)) {
    if (form.cell) {
      const auto numbers = form.matrix[0] > 0
                               ? form.matrix
                               : std::array{form.lengths[0], form.angles[2], form.lengths[1],
                                            form.angles[1],  form.angles[0], form.lengths[2]};
      length(48);
      for (const double x : numbers) out.f64(x);
      length(48);
    }
    for (int axis = 0; axis < form.dimensions; ++axis) {
      const int64_t held = at == 0 ? atoms : free;
      length(4 * held);
      for (int64_t i = 0; i < held; ++i) {
        const auto atom =
            static_cast<size_t>(held == atoms ? i : form.free[static_cast<size_t>(i)]);
        out.f32(axis == 3 ? 7.0f : xyz[at + 3 * atom + static_cast<size_t>(axis)]);
      }
      length(4 * held);
    }
  }
  return out.bytes();
}

struct TrrForm {
  bool wide = false;
  /// Odd frames have velocities and no positions.
  bool velocities = false;
  UnitCell cell{};
};

inline Bytes trr_bytes(const std::vector<float>& xyz, int64_t atoms, const TrrForm& form = {}) {
  ByteWriter out;
  const int element = form.wide ? 8 : 4;
  const auto real = [&](double x) { form.wide ? out.f64(x) : out.f32(static_cast<float>(x)); };
  const size_t each = static_cast<size_t>(3 * atoms);
  for (size_t at = 0; at < xyz.size(); at += each) {
    for (const bool moving : {false, true}) {
      if (moving && !form.velocities) continue;
      out.whole(1993).whole(13).whole(12).text("GMX_trn_file");
      const int64_t vectors = 3 * atoms * element;
      for (const int64_t part : {int64_t{0}, int64_t{0}, int64_t{9 * element}, int64_t{0},
                                 int64_t{0}, int64_t{0}, int64_t{0}, moving ? 0 : vectors,
                                 moving ? vectors : 0, int64_t{0}, atoms, int64_t{7}, int64_t{0}})
        out.whole(part);
      real(0), real(0);
      for (const float x : form.cell) real(double{x} / 10);
      for (size_t i = 0; i < each; ++i) real(moving ? 9.0 : double{xyz[at + i]} / 10);
    }
  }
  return out.bytes();
}

/// The encoder for xtc_bits.h, which stores as many atoms as possible as small ones.
class XtcPacker {
 public:
  explicit XtcPacker(std::vector<std::array<int32_t, 3>> atoms) : atoms_(std::move(atoms)) {
    packing.least = packing.greatest = atoms_[0];
    for (const auto& atom : atoms_)
      for (size_t axis = 0; axis < 3; ++axis) {
        packing.least[axis] = std::min(packing.least[axis], atom[axis]);
        packing.greatest[axis] = std::max(packing.greatest[axis], atom[axis]);
      }
    packing.small = place_ = 24;  // 256: 2.5 Angstrom with a precision of 1000
    pack();
  }

  XtcPacking packing;
  Bytes bytes;
  int64_t small_atoms = 0;

 private:
  void bits(uint64_t value, int count) {
    for (int i = count; i-- > 0; ++used_) {
      if (used_ % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<uint8_t>(bytes.back() | (value >> i & 1) << (7 - used_ % 8));
    }
  }

  void joined(const std::array<uint64_t, 3>& values, const std::array<uint32_t, 3>& sizes,
              int count) {
    __extension__ using Wide = unsigned __int128;
    Wide number = (Wide{values[0]} * sizes[1] + values[1]) * sizes[2] + values[2];
    for (; count > 0; count -= 8, number >>= 8)
      bits(static_cast<uint64_t>(number & 255), std::min(count, 8));
  }

  bool close(size_t a, size_t b) const {
    const int32_t size = xtc_small_size(place_), half = size / 2;
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t distance = int64_t{atoms_[a][axis]} - atoms_[b][axis] + half;
      if (distance < 0 || distance >= size) return false;
    }
    return true;
  }

  void large(size_t a) {
    std::array<uint32_t, 3> sizes{};
    std::array<uint64_t, 3> values{};
    bool apart = false;
    for (size_t axis = 0; axis < 3; ++axis) {
      sizes[axis] =
          static_cast<uint32_t>(int64_t{packing.greatest[axis]} - packing.least[axis]) + 1;
      values[axis] = static_cast<uint64_t>(int64_t{atoms_[a][axis]} - packing.least[axis]);
      apart |= sizes[axis] > 0xffffff;
    }
    if (!apart) return joined(values, sizes, xtc_bits_of(sizes));
    for (size_t axis = 0; axis < 3; ++axis) bits(values[axis], std::bit_width(sizes[axis]));
  }

  void small(size_t a, size_t before) {
    const auto size = static_cast<uint32_t>(xtc_small_size(place_));
    std::array<uint64_t, 3> values{};
    for (size_t axis = 0; axis < 3; ++axis)
      values[axis] = static_cast<uint64_t>(int64_t{atoms_[a][axis]} - atoms_[before][axis] +
                                           static_cast<int32_t>(size) / 2);
    joined(values, {size, size, size}, place_);
    ++small_atoms;
  }

  void pack() {
    uint64_t last_run = 0;
    int group = 0;
    for (size_t at = 0; at < atoms_.size(); ++group) {
      uint64_t run = 0;
      if (at + 1 < atoms_.size() && close(at, at + 1)) {
        run = 1;
        size_t before = at;
        while (run < 8 && at + run + 1 < atoms_.size() && close(at + run + 1, before))
          before = at + ++run;
      }
      const int change = group % 5 == 1 ? 1 : group % 5 == 3 ? -1 : 0;
      large(run > 0 ? at + 1 : at);
      if (run == last_run && change == 0) {
        bits(0, 1);
      } else {
        bits(1, 1);
        bits(3 * run + static_cast<uint64_t>(change + 1), 5);
      }
      last_run = run;
      if (run > 0) small(at, at + 1);
      for (uint64_t k = 2; k <= run; ++k) small(at + k, k == 2 ? at : at + k - 1);
      at += run + 1;
      place_ += change;
    }
  }

  std::vector<std::array<int32_t, 3>> atoms_;
  int place_ = 0;
  size_t used_ = 0;
};

inline Bytes xtc_bytes(const std::vector<float>& xyz, int64_t atoms, int magic = 1995,
                       const UnitCell& cell = {}) {
  ByteWriter out;
  const size_t each = static_cast<size_t>(3 * atoms);
  for (size_t at = 0; at < xyz.size(); at += each) {
    out.whole(magic).whole(atoms).whole(5).zeros(4);
    for (const float x : cell) out.f32(x / 10);
    out.whole(atoms);
    if (atoms <= 9) {
      for (size_t i = 0; i < each; ++i) out.f32(xyz[at + i] / 10);
      continue;
    }
    std::vector<std::array<int32_t, 3>> integers(static_cast<size_t>(atoms));
    for (size_t i = 0; i < each; ++i)
      integers[i / 3][i % 3] = static_cast<int32_t>(std::lround(double{xyz[at + i]} * 100));
    const XtcPacker packer(integers);
    out.f32(1000);
    for (const int32_t least : packer.packing.least) out.whole(least);
    for (const int32_t greatest : packer.packing.greatest) out.whole(greatest);
    out.whole(packer.packing.small).whole(std::ssize(packer.bytes), magic == 2023 ? 8 : 4);
    out.text({reinterpret_cast<const char*>(packer.bytes.data()), packer.bytes.size()}).padded();
  }
  return out.bytes();
}

}  // namespace tutti::data
