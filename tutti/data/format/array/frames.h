#pragma once
// Frames: a trajectory, read frame by frame.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"
#include "tutti/data/format/array/unit_cell.h"

namespace tutti::data {

/// GROMACS counts in nanometres.
inline constexpr double kAngstromPerNanometre = 10;

/// The frames of an open trajectory, all of the same atoms. Immutable; any thread.
class Frames {
 public:
  virtual ~Frames() = default;

  const FileBytes& file() const { return file_; }
  int64_t frames() const { return frames_; }
  int64_t atoms() const { return atoms_; }
  /// x y z of each atom of a frame, in Angstrom: 3 * atoms() numbers. BadFile naming file and frame
  /// where its bytes are damaged; whether the numbers are finite is read_frames()'s business.
  virtual void read(int64_t frame, std::span<float> xyz) const = 0;
  /// Whether the file has a unit cell for each frame.
  virtual bool has_cells() const { return false; }
  /// In Angstrom; as it is stored, so perhaps not sound. Only where has_cells(). `xyz`, coordinates
  /// of this frame, are turned where the stored vectors have other axes than a UnitCell.
  virtual UnitCell cell(int64_t frame, std::span<float> xyz) const;

 protected:
  explicit Frames(FileBytes file) : file_(std::move(file)) {}

  /// BadFile about a frame, counted from 0.
  [[noreturn]] void refuse(int64_t frame, std::string_view why) const;

  FileBytes file_;
  int64_t frames_ = 0, atoms_ = 0;
};

/// The arrays of a trajectory: `coordinates` [frames, atoms, 3], and where its first frame has a
/// unit cell kPeriodicArray [frames, atoms + 3, 3], the same with the cell's three vectors behind
/// the atoms.
inline constexpr const char* kPeriodicArray = "coordinates_and_cell";
std::vector<StoredArray> frame_arrays(std::shared_ptr<const Frames> frames);
/// A slab of one of them: each frame that it touches is read as a whole. BadFile for a coordinate
/// that is not finite, or a cell that is not sound.
void read_frames(const Frames& frames, bool with_cells, const Slab& slab, float* out);

/// Of AMBER's NetCDF and MDTraj's HDF5: where `coordinates`, `cell_lengths` and `cell_angles` stand
/// beside each other, kPeriodicArray of them is added, in the unit that the file has.
void add_periodic_array(const FileBytes& file, std::vector<StoredArray>& arrays);

/// Numbers of a binary file, one behind the other. Reads the file in small blocks, so that a walk
/// over headers makes few calls. Beyond the file's end: BadFile, which says at which frame.
class HeaderReader {
 public:
  explicit HeaderReader(const FileBytes& file, bool big_endian = true)
      : file_(file), big_endian_(big_endian) {}

  int64_t at() const { return at_; }
  int64_t left() const { return file_.size() - at_; }
  bool at_end() const { return at_ == file_.size(); }
  /// From here on a frame is read; it began at `at()`.
  void begin_frame(int64_t frame) {
    frame_ = frame;
    frame_at_ = at_;
  }
  void skip(int64_t bytes);

  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  int32_t i32() { return static_cast<int32_t>(u32()); }
  int64_t i64() { return static_cast<int64_t>(number(8)); }
  float f32();
  double f64();

 private:
  uint64_t number(int64_t bytes);
  void require(int64_t bytes) const;

  const FileBytes& file_;
  bool big_endian_;
  int64_t at_ = 0, frame_ = -1, frame_at_ = 0;
  int64_t block_at_ = 0;
  std::vector<uint8_t> block_{};
};

}  // namespace tutti::data
