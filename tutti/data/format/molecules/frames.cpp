#include "tutti/data/format/molecules/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tutti::data {

void Frames::refuse(int64_t frame, std::string_view why) const {
  throw BadFile(fmt::format("{}: frame {} (counted from 0) {}", file_.name(), frame, why));
}

std::vector<StoredArray> frame_arrays(std::shared_ptr<const Frames> frames) {
  StoredArray array;
  array.info = {.name = "coordinates",
                .type = ElementType::f32,
                .shape = {frames->frames(), frames->atoms(), 3},
                .dimensions = {"frame", "atom", "spatial"},
                .attributes = {{"units", {.numbers = {}, .text = "angstrom"}}}};
  array.frames = std::move(frames);
  return {std::move(array)};
}

void read_frames(const Frames& frames, const Slab& slab, float* out) {
  std::vector<float> xyz(static_cast<size_t>(3 * frames.atoms()));
  const auto axis = static_cast<size_t>(slab.start[2]), axes = static_cast<size_t>(slab.count[2]);
  for (int64_t frame = slab.start[0]; frame < slab.start[0] + slab.count[0]; ++frame) {
    frames.read(frame, xyz);
    for (int64_t i = 0; i < slab.count[1]; ++i) {
      const size_t atom = static_cast<size_t>(slab.start[1] + i);
      const float* from = xyz.data() + 3 * atom;
      if (!std::isfinite(from[0]) || !std::isfinite(from[1]) || !std::isfinite(from[2]))
        throw BadFile(fmt::format(
            "{}: frame {} (counted from 0): the coordinates of atom {} are {} {} {}, expected "
            "finite numbers: the simulation failed before, or the file is corrupted; leave the "
            "frame out",
            frames.file().name(), frame, atom, from[0], from[1], from[2]));
      out = std::copy_n(from + axis, axes, out);
    }
  }
}

void HeaderReader::require(int64_t bytes) const {
  if (bytes <= left()) return;
  if (frame_ < 0)
    throw BadFile(
        fmt::format("{}: its header ends at byte {}, where {} more were expected: the "
                    "file is truncated; fetch it again",
                    file_.name(), file_.size(), bytes - left()));
  throw BadFile(fmt::format(
      "{}: frame {} (counted from 0) begins at byte {} and goes beyond the end of the file, {} "
      "bytes: fetch the file again; if a simulation was interrupted, 'truncate -s {}' leaves the "
      "frames before it",
      file_.name(), frame_, frame_at_, file_.size(), frame_at_));
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
