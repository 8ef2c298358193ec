#include "tutti/data/format/molecules/dcd.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

namespace tutti::data {
namespace {

constexpr int64_t kDcdHeader = 84, kDcdCell = 48;

uint32_t dcd_u32(const uint8_t* at, bool big_endian) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | at[big_endian ? i : 3 - i];
  return value;
}

class DcdFrames final : public Frames {
 public:
  explicit DcdFrames(const FileBytes& file) : Frames(file) {
    std::array<uint8_t, 12> head{};
    if (file.size() < std::ssize(head)) wrong("a header of 84 bytes", "the file's end");
    file.read(0, head);
    if (std::memcmp(head.data() + 8, "CORD", 4) == 0)
      throw BadFile(
          fmt::format("{}: its records have lengths of 64 bits: convert it (mdconvert, "
                      "catdcd) to a DCD with lengths of 32 bits",
                      file.name()));
    if (std::memcmp(head.data() + 4, "VELD", 4) == 0)
      throw BadFile(
          fmt::format("{}: holds velocities, not coordinates: give the DCD of the "
                      "coordinates",
                      file.name()));
    big_endian_ = dcd_u32(head.data(), true) == kDcdHeader;
    HeaderReader header(file_, big_endian_);
    read_numbers(header);
    const int64_t titles = header.u32();
    header.skip(titles);
    if (header.u32() != titles) wrong("titles between two equal lengths", "others");
    const bool sound = header.u32() == 4;
    atoms_ = header.i32();
    if (!sound || header.u32() != 4) wrong("the number of atoms in a record of 4 bytes", "another");
    if (atoms_ < 1) wrong("at least one atom", std::to_string(atoms_));
    first_ = header.at();
    frame_bytes_ = (has_cell_ ? 8 + kDcdCell : 0) + 3 * (8 + 4 * atoms_);
    find_frames();
  }

  void read(int64_t frame, std::span<float> xyz) const override {
    std::vector<uint8_t> bytes(static_cast<size_t>(frame_bytes_));
    file_.read(first_ + frame * frame_bytes_, bytes);
    const uint8_t* at = bytes.data();
    if (has_cell_) at = record(at, kDcdCell, frame) + kDcdCell + 4;
    for (size_t axis = 0; axis < 3; ++axis) {
      at = record(at, 4 * atoms_, frame);
      for (size_t i = 0; i < static_cast<size_t>(atoms_); ++i, at += 4)
        xyz[3 * i + axis] = std::bit_cast<float>(dcd_u32(at, big_endian_));
      at += 4;
    }
  }

  bool has_cells() const override { return has_cell_; }
  /// The record has A, gamma, B, beta, alpha, C; angles in degrees, or where all three are between
  /// -1 and 1 their cosines, as NAMD and VMD write them.
  UnitCell cell(int64_t frame) const override {
    HeaderReader reader(file_, big_endian_);
    reader.skip(first_ + frame * frame_bytes_);
    if (reader.u32() != kDcdCell) refuse_length(frame);
    std::array<double, 6> stored{};
    for (double& x : stored) x = reader.f64();
    std::array<double, 3> angles = {stored[4], stored[3], stored[1]};
    if (std::ranges::all_of(angles, [](double x) { return std::abs(x) <= 1; }))
      for (double& x : angles) x = 90 - std::asin(x) * 180 / std::numbers::pi;
    const std::array<double, 3> lengths = {stored[0], stored[2], stored[5]};
    if (lengths == std::array<double, 3>{}) return {};
    if (std::ranges::any_of(angles, [](double x) { return !(x > 0 && x < 180); }))
      refuse(frame,
             fmt::format(
                 "has a unit cell with the numbers [{}], which are neither lengths and angles nor "
                 "lengths and cosines: convert the file (mdconvert, catdcd), or read "
                 "'coordinates' without it",
                 fmt::join(stored, " ")));
    return unit_cell_of(lengths, angles);
  }

 private:
  [[noreturn]] void wrong(std::string_view expected, std::string_view found) const {
    throw BadFile(
        fmt::format("{}: expected {} in the header of a DCD, found {}: the file is "
                    "corrupted, or no DCD; fetch it again",
                    file_.name(), expected, found));
  }

  void read_numbers(HeaderReader& header) {
    if (header.u32() != kDcdHeader) wrong("a record of 84 bytes", "another length");
    header.skip(4);
    std::array<int32_t, 20> numbers{};
    for (int32_t& number : numbers) number = header.i32();
    if (header.u32() != kDcdHeader) wrong("a record of 84 bytes", "another length at its end");
    if (numbers[8] != 0)
      throw BadFile(fmt::format(
          "{}: {} of its atoms are fixed, and its frames leave them out: convert it (mdconvert, "
          "catdcd), which writes all atoms of each frame",
          file_.name(), numbers[8]));
    const bool charmm = numbers[19] != 0;
    has_cell_ = charmm && numbers[10] != 0;
    if (charmm && numbers[11] != 0)
      throw BadFile(
          fmt::format("{}: has a fourth dimension, which is not read: convert it "
                      "(mdconvert, catdcd) to three",
                      file_.name()));
  }

  void find_frames() {
    const int64_t held = file_.size() - first_;
    frames_ = held / frame_bytes_;
    if (frames_ == 0)
      throw BadFile(
          fmt::format("{}: expected a frame of {} atoms, {} bytes, found {} bytes: the "
                      "file is truncated or corrupted; fetch it again",
                      file_.name(), atoms_, frame_bytes_, held));
    check_lengths();
    HeaderReader rest(file_, big_endian_);
    rest.skip(first_ + frames_ * frame_bytes_);
    rest.begin_frame(frames_);
    if (!rest.at_end()) rest.skip(frame_bytes_);  // refused
  }

  /// Of the first frame: another layout is found when the file is opened.
  void check_lengths() const {
    HeaderReader lengths(file_, big_endian_);
    lengths.skip(first_);
    for (int part = has_cell_ ? -1 : 0; part < 3; ++part) {
      const int64_t expected = part < 0 ? kDcdCell : 4 * atoms_;
      if (lengths.u32() != expected) refuse_length(0);
      lengths.skip(expected);
      if (lengths.u32() != expected) refuse_length(0);
    }
  }

  [[noreturn]] void refuse_length(int64_t frame) const {
    refuse(frame, fmt::format("is not laid out as {} atoms {} a unit cell: the file is corrupted; "
                              "fetch it again, or convert it (mdconvert, catdcd)",
                              atoms_, has_cell_ ? "with" : "without"));
  }

  /// Where the content of a record begins whose length stands at `at`.
  const uint8_t* record(const uint8_t* at, int64_t bytes, int64_t frame) const {
    if (dcd_u32(at, big_endian_) != bytes || dcd_u32(at + 4 + bytes, big_endian_) != bytes)
      refuse_length(frame);
    return at + 4;
  }

  bool big_endian_ = false, has_cell_ = false;
  int64_t first_ = 0, frame_bytes_ = 0;
};

}  // namespace

bool is_dcd(std::span<const uint8_t> head) {
  if (head.size() < 12) return false;
  const bool length =
      dcd_u32(head.data(), true) == kDcdHeader || dcd_u32(head.data(), false) == kDcdHeader;
  const auto says = [&](size_t at, const char* word) {
    return std::memcmp(head.data() + at, word, 4) == 0;
  };
  const bool long_lengths =
      says(8, "CORD") && (length || dcd_u32(head.data() + 4, true) == kDcdHeader);
  return (length && (says(4, "CORD") || says(4, "VELD"))) || long_lengths;
}

std::shared_ptr<const Frames> read_dcd(const FileBytes& file) {
  return std::make_shared<DcdFrames>(file);
}

}  // namespace tutti::data
