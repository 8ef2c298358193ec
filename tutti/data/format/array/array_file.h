#pragma once
// An array file is a list of named arrays {name, type, shape}, of which slabs are read: NumPy's
// .npy and .npz, HDF5 (so NetCDF-4, too), classic NetCDF, TIFF (tiff_arrays.h), trajectories of
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

/// Of HDF5 and NetCDF-4: _FillValue, scale_factor, units ... Either numbers (integers beyond 2^53
/// are rounded) or text.
struct ArrayAttribute {
  std::vector<double> numbers{};
  std::string text{};
};

struct ArrayInfo {
  std::string name{};  ///< .npy: "array"; HDF5: its path without the first '/', "climate/data"
  ElementType type = ElementType::u8;
  std::vector<int64_t> shape{};  ///< row-major; empty: one element
  std::vector<int64_t> chunk{};  ///< what is stored (and compressed) together; empty: no such parts
  std::vector<std::string> dimensions{};  ///< of NetCDF and trajectories, one each; else empty
  std::map<std::string, ArrayAttribute> attributes{};
  bool unsigned_by_attribute = false;  ///< `_Unsigned` made the unsigned type of a signed one
  /// Why it cannot be read: a type or filter that is not known here, or more bytes than the file
  /// can hold. Empty: it can. find() refuses such an array, so whoever allocates bytes() after
  /// find() never allocates what a damaged header makes up.
  std::string problem{};
  /// In HDF5, where the name is a link: "soft link to raw/x", "external link to x in other.h5",
  /// "hard link, as raw/x" (the second of two names). Empty: the array's own name.
  std::string link{};

  int64_t elements() const;
  int64_t bytes() const;  ///< in memory
};

/// Names of HDF5's groups that lie in themselves, and the paths under which their arrays are
/// listed: "run7/up" and "run7".
using NameCircles = std::map<std::string, std::string>;

/// An array's name without what need not be in it: "run7/d" of "/run7//./d" and of "run7/up/up/d".
std::string plain_array_name(std::string_view name, const NameCircles& circles = {});

/// What is read of an array: count[i] elements of dimension i from start[i] on.
struct Slab {
  std::vector<int64_t> start, count;

  int64_t elements() const;
  static Slab all(const ArrayInfo& info);
  /// The elements [first, first + count) of the first dimension.
  static Slab rows(const ArrayInfo& info, int64_t first, int64_t count);
};

struct StoredArray;
class ChunkCache;

/// An array that lies in a file and cannot be read, whoever asks for it: the file is at fault.
class UnreadableArray : public BadFile {
  using BadFile::BadFile;
};

/// An open file. Headers were checked when it was opened: places and sizes lie within the file.
/// Copies mean the same file. All calls may run on any number of threads at the same time: data
/// are read by position and inflated here, never through the HDF5 library, which has one lock.
class ArrayFile {
 public:
  ArrayFile(std::string name, std::vector<StoredArray> arrays, NameCircles circles = {});

  const std::string& name() const;               ///< the path, for messages
  const std::vector<ArrayInfo>& arrays() const;  ///< also those with a problem
  /// The index of the array, by its own name or another spelling (plain_array_name()). BadFile if
  /// there is none of that name (it lists those that are there) or if it has a problem.
  size_t find(std::string_view array) const;
  bool holds(std::string_view array) const;  ///< with a problem, too
  /// find(), and BadFile unless type and shape are these; an extent of -1 allows any.
  size_t find(std::string_view array, ElementType type, std::span<const int64_t> shape) const;

  /// Reads a slab into `out`, row-major, native byte order, slab.elements() elements of the array's
  /// own type. Stored values: scale_factor and the like are the reader's business, but for
  /// `_Unsigned`, by which `type` is what the values mean. Each chunk is
  /// read and inflated once a call; one that the slab takes a part of is kept in `cache`, if there
  /// is one. A compressed .npz member is inflated whole at its first use and kept. CHECKs the
  /// slab's bounds; BadFile where the data are damaged, IoError where the file was shortened or the
  /// disk fails.
  void read(size_t array, const Slab& slab, void* out, ChunkCache* cache = nullptr) const;
  /// Where the slab lies in memory as read() would write it, aligned for its type; null where it
  /// does not. The memory stays while `keeper()` does.
  const void* view(size_t array, const Slab& slab) const;
  std::shared_ptr<const void> keeper() const { return content_; }
  /// Whether its rows lie in the file one after the other as read() gives them, so that parts of it
  /// are read as fast as the whole.
  bool in_order(size_t array) const;
  /// Bytes of inflated members that it keeps.
  int64_t held_bytes() const;
  /// The same as f32, whatever the type.
  void read_f32(size_t array, const Slab& slab, float* out) const;

  /// Reads everything once and checks what checksums there are. BadFile.
  void verify() const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;  // shared by copies, which mean the same file
};

struct ArrayFileOptions {
  /// HDF5's library can crash on a damaged file, so its headers are walked in a child process
  /// (hdf5_probe.h). false: in this process, which saves the fork: for files that were opened
  /// before.
  bool probe = true;
  int probe_seconds = 60;  ///< after which the child is ended and the file refused
};

}  // namespace tutti::data
