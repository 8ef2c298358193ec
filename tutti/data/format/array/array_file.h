#pragma once
// An array file is a list of named arrays {name, type, shape}, which are read in slabs: NumPy's
// .npy and .npz, HDF5 (including NetCDF-4), classic NetCDF, TIFF (tiff_arrays.h), trajectories of
// molecules (molecules/), and raw binary that a small TOML file describes (raw_arrays.h).

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/element_type.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// An attribute in HDF5 or NetCDF: _FillValue, scale_factor, units ... It has either numbers
/// (integers beyond 2^53 are rounded) or text.
struct ArrayAttribute {
  std::vector<double> numbers{};
  std::string text{};
};

struct ArrayInfo {
  std::string name{};  ///< .npy: "array"; HDF5: its path without the first '/', "climate/data"
  ElementType type = ElementType::u8;
  std::vector<int64_t> shape{};  ///< row-major; empty: one element
  std::vector<int64_t> chunk{};  ///< extents stored (and compressed) together; empty: no chunks
  std::vector<std::string> dimensions{};  ///< names, one each, in NetCDF and trajectories; or empty
  std::map<std::string, ArrayAttribute> attributes{};
  bool unsigned_by_attribute = false;  ///< `_Unsigned` turned a signed type into `type`
  /// Why the array cannot be read: an unknown type or filter, or more bytes than the file can hold.
  /// Empty: it can be read. find() refuses such an array, so a caller that allocates bytes() after
  /// find() never allocates a size that a damaged header makes up.
  std::string problem{};
  /// In HDF5, if the name is a link: "soft link to raw/x", "external link to x in other.h5", "hard
  /// link, as raw/x" (the second of two names). Empty: the array's own name.
  std::string link{};

  int64_t elements() const;
  int64_t bytes() const;  ///< in memory
};

/// Maps names of HDF5 groups that contain themselves to the paths under which their arrays are
/// listed: "run7/up" to "run7".
using NameCircles = std::map<std::string, std::string>;

/// Returns an array's shortest name: "run7/d" for "/run7//./d" and for "run7/up/up/d".
std::string plain_array_name(std::string_view name, const NameCircles& circles = {});

/// The part to read of an array: count[i] elements of dimension i from start[i] on.
struct Slab {
  std::vector<int64_t> start, count;

  int64_t elements() const;
  static Slab all(const ArrayInfo& info);
  /// Returns elements [first, first + count) of the first dimension.
  static Slab rows(const ArrayInfo& info, int64_t first, int64_t count);
};

struct StoredArray;
class ChunkCache;

/// An array in a file cannot be read by any reader: the file is at fault.
class UnreadableArray : public BadFile {
  using BadFile::BadFile;
};

/// An open file. Headers were checked at opening: places and sizes lie within the file. Copies
/// share the file. All calls may run on any number of threads at the same time: data are read by
/// position and inflated here, never through the HDF5 library, which has one lock.
class ArrayFile {
 public:
  ArrayFile(std::string name, std::vector<StoredArray> arrays, NameCircles circles = {});

  const std::string& name() const;               ///< the path, for messages
  const std::vector<ArrayInfo>& arrays() const;  ///< includes arrays with a problem
  /// Returns the index of the array, by its own name or another spelling (plain_array_name()).
  /// BadFile if no array has that name (it lists the existing ones) or if it has a problem.
  size_t find(std::string_view array) const;
  bool holds(std::string_view array) const;  ///< also with a problem
  /// Does the same with BadFile unless type and shape are these; an extent of -1 allows any.
  size_t find(std::string_view array, ElementType type, std::span<const int64_t> shape) const;

  /// Reads a slab into `out`, row-major, native byte order, slab.elements() elements of the array's
  /// own type. Values are as stored: the reader applies scale_factor and the like, except
  /// `_Unsigned`, which is already part of `type`. Each chunk is read and inflated once per call; a
  /// chunk that is only partly in the slab is kept in `cache`, if there is one. A compressed .npz
  /// member is inflated whole at its first use and kept. CHECKs the slab's bounds; BadFile where
  /// the data are damaged, IoError where the file was shortened or the disk fails.
  void read(size_t array, const Slab& slab, void* out, ChunkCache* cache = nullptr) const;
  /// Returns the slab's place in memory if it lies there as read() would write it, aligned for its
  /// type; else null. The memory stays valid while `keeper()` lives.
  const void* view(size_t array, const Slab& slab) const;
  std::shared_ptr<const void> keeper() const { return content_; }
  /// Says whether its rows lie in the file in the order of read(), so that parts of it are read as
  /// fast as the whole.
  bool in_order(size_t array) const;
  /// Returns the bytes of inflated members that it keeps.
  int64_t held_bytes() const;
  /// Reads a slab as f32, whatever the type.
  void read_f32(size_t array, const Slab& slab, float* out) const;

  /// Reads everything once and checks all checksums. BadFile.
  void verify() const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;  // shared by copies
};

struct ArrayFileOptions {
  /// HDF5's library can crash on a damaged file, so a child process walks its headers
  /// (hdf5_probe.h). false: this process does, which saves the fork: for files that were opened
  /// before.
  bool probe = true;
  int probe_seconds = 60;  ///< time limit, after which the child is ended and the file refused
};

}  // namespace tutti::data
