#pragma once
// Frames reads a trajectory frame by frame.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"
#include "tutti/data/format/array/unit_cell.h"

namespace tutti::data {

/// GROMACS uses nanometres.
inline constexpr double kAngstromPerNanometre = 10;

/// The frames of an open trajectory, all with the same atoms. Immutable; usable from any thread.
class Frames {
 public:
  virtual ~Frames() = default;

  const FileBytes& file() const { return file_; }
  int64_t frames() const { return frames_; }
  int64_t atoms() const { return atoms_; }
  /// Reads x y z of each atom of a frame, in Angstrom: 3 * atoms() numbers. BadFile naming file and
  /// frame if its bytes are damaged; read_frames() checks that the numbers are finite.
  virtual void read(int64_t frame, std::span<float> xyz) const = 0;
  /// Says whether the file has a unit cell for each frame.
  virtual bool has_cells() const { return false; }
  /// Returns the cell as stored, in Angstrom, so it may be unsound. Requires has_cells(). `xyz`,
  /// coordinates of this frame, are rotated if the stored vectors have other axes than a UnitCell.
  virtual UnitCell cell(int64_t frame, std::span<float> xyz) const;

 protected:
  explicit Frames(FileBytes file) : file_(std::move(file)) {}

  /// Throws BadFile about a frame, counted from 0.
  [[noreturn]] void refuse(int64_t frame, std::string_view why) const;
  /// Reads big-endian numbers in nanometres, f64 if `wide`, from byte `at` on.
  void read_angstrom(int64_t at, bool wide, std::span<float> out) const;

  FileBytes file_;
  int64_t frames_ = 0, atoms_ = 0;
};

/// Returns the arrays of a trajectory: `coordinates` [frames, atoms, 3], and, if its first frame
/// has a unit cell, kPeriodicArray [frames, atoms + 3, 3], the same with the cell's three vectors
/// after the atoms.
inline constexpr const char* kPeriodicArray = "coordinates_and_cell";
std::vector<StoredArray> frame_arrays(std::shared_ptr<const Frames> frames);
/// Reads a slab of one of these arrays; each frame in it is read whole. BadFile for a coordinate
/// that is not finite, or an unsound cell.
void read_frames(const Frames& frames, bool with_cells, const Slab& slab, float* out);

/// For AMBER's NetCDF and MDTraj's HDF5: where `coordinates`, `cell_lengths` and `cell_angles` are
/// in one group, adds kPeriodicArray made from them, in the unit of the file.
void add_periodic_array(const FileBytes& file, std::vector<StoredArray>& arrays);

/// Reads numbers of a binary file, one after the other, in small blocks, so that a walk over
/// headers makes few calls. Beyond the file's end: BadFile, which names the frame.
class HeaderReader {
 public:
  explicit HeaderReader(const FileBytes& file, bool big_endian = true)
      : file_(file), big_endian_(big_endian) {}

  int64_t at() const { return at_; }
  int64_t left() const { return file_.size() - at_; }
  bool at_end() const { return at_ == file_.size(); }
  /// Notes that a frame begins here, at `at()`.
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
