#include "tutti/data/format/array/frames.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tutti::data {

void Frames::refuse(int64_t frame, std::string_view why) const {
  throw BadFile("{}: frame {} (counted from 0) {}", file_.name(), frame, why);
}

void Frames::read_angstrom(int64_t at, bool wide, std::span<float> out) const {
  const size_t element = wide ? 8 : 4;
  std::vector<uint8_t> bytes(out.size() * element);
  file_.read(at, bytes);
  swap_bytes(bytes, element);
  for (size_t i = 0; i < out.size(); ++i) {
    const uint8_t* from = &bytes[i * element];
    const double stored = wide ? number_at<double>(from) : double{number_at<float>(from)};
    out[i] = static_cast<float>(stored * kAngstromPerNanometre);
  }
}

UnitCell Frames::cell(int64_t, std::span<float>) const {
  CHECK(false, "{} has no unit cells", file_.name());
}

namespace {

StoredArray frame_array(const std::shared_ptr<const Frames>& frames, bool with_cells) {
  StoredArray array;
  array.info = {.name = with_cells ? kPeriodicArray : "coordinates",
                .type = ElementType::f32,
                .shape = {frames->frames(), frames->atoms() + (with_cells ? 3 : 0), 3},
                .dimensions = {"frame", "atom", "spatial"}};
  array.frames = frames;
  array.with_cells = with_cells;
  return array;
}

void check_coordinates(const Frames& frames, int64_t frame, size_t atom, const float* xyz) {
  if (std::isfinite(xyz[0]) && std::isfinite(xyz[1]) && std::isfinite(xyz[2])) return;
  throw BadFile(
      "{}: frame {} (counted from 0): the coordinates of atom {} are {} {} {}, expected finite "
      "numbers: the simulation failed before, or the file is corrupted; leave the frame out",
      frames.file().name(), frame, atom, xyz[0], xyz[1], xyz[2]);
}

UnitCell sound_cell(const Frames& frames, int64_t frame, std::span<float> xyz) {
  const UnitCell cell = frames.cell(frame, xyz);
  if (!is_no_cell(cell) && !is_sound_cell(cell))
    throw BadFile(
        "{}: frame {} (counted from 0): its unit cell is [{}], expected vectors (x 0 0), (x y 0), "
        "(x y z) with lengths above 0: read 'coordinates' without it, or convert the file "
        "(gmx trjconv, mdconvert)",
        frames.file().name(), frame, fmt::join(cell, " "));
  return cell;
}

/// Adds the array with cells, unless the first frame has none. Invalid cells do not affect the
/// coordinates: they are a problem of this array alone.
void add_cells(const std::shared_ptr<const Frames>& frames, StoredArray array,
               std::vector<StoredArray>& arrays) {
  try {
    if (is_no_cell(sound_cell(*frames, 0, {}))) return;
  } catch (const BadFile& error) {
    array.info.problem = error.what();
  }
  arrays.push_back(std::move(array));
}

}  // namespace

std::vector<StoredArray> frame_arrays(std::shared_ptr<const Frames> frames) {
  std::vector<StoredArray> arrays = {frame_array(frames, false)};
  if (frames->has_cells()) add_cells(frames, frame_array(frames, true), arrays);
  for (StoredArray& array : arrays)
    array.info.attributes = {{"units", {.numbers = {}, .text = "angstrom"}}};
  return arrays;
}

void read_frames(const Frames& frames, bool with_cells, const Slab& slab, float* out) {
  const auto atoms = static_cast<size_t>(frames.atoms());
  std::vector<float> xyz(3 * atoms);
  const auto axis = static_cast<size_t>(slab.start[2]), axes = static_cast<size_t>(slab.count[2]);
  for (int64_t frame = slab.start[0]; frame < slab.start[0] + slab.count[0]; ++frame) {
    frames.read(frame, xyz);
    const UnitCell cell = with_cells ? sound_cell(frames, frame, xyz) : UnitCell{};
    for (int64_t i = 0; i < slab.count[1]; ++i) {
      const size_t row = static_cast<size_t>(slab.start[1] + i);
      const float* from = row < atoms ? xyz.data() + 3 * row : cell.data() + 3 * (row - atoms);
      if (row < atoms) check_coordinates(frames, frame, row, from);
      out = std::copy_n(from + axis, axes, out);
    }
  }
}

void HeaderReader::require(int64_t bytes) const {
  if (bytes <= left()) return;
  if (frame_ < 0)
    throw BadFile(
        "{}: its header ends at byte {}, where {} more were expected: the file is truncated; fetch "
        "it again",
        file_.name(), file_.size(), bytes - left());
  throw BadFile(
      "{}: frame {} (counted from 0) begins at byte {} and goes beyond the end of the file, {} "
      "bytes: fetch the file again; if a simulation was interrupted, 'truncate -s {}' leaves the "
      "frames before it",
      file_.name(), frame_, frame_at_, file_.size(), frame_at_);
}

void HeaderReader::skip(int64_t bytes) {
  CHECK(bytes >= 0, "{} bytes", bytes);
  require(bytes);
  at_ += bytes;
}

uint64_t HeaderReader::number(int64_t bytes) {
  constexpr int64_t kBlockBytes = 512;
  require(bytes);
  if (at_ < block_at_ || at_ + bytes > block_at_ + std::ssize(block_)) {
    block_.resize(static_cast<size_t>(std::min(kBlockBytes, left())));
    block_at_ = at_;
    file_.read(at_, block_);
  }
  uint64_t value = 0;
  for (int64_t i = 0; i < bytes; ++i) {
    const int64_t from = at_ - block_at_ + (big_endian_ ? i : bytes - 1 - i);
    value = value << 8 | block_[static_cast<size_t>(from)];
  }
  at_ += bytes;
  return value;
}

float HeaderReader::f32() { return std::bit_cast<float>(u32()); }
double HeaderReader::f64() { return std::bit_cast<double>(number(8)); }

}  // namespace tutti::data
