#pragma once
// A StoredArray says where the bytes of an array lie in its file. Each format's reader makes it
// from headers; ArrayFile reads all of them in the same way.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/chunk_cache.h"

namespace tutti::data {

/// A deflated zip member, inflated whole at its first use.
struct PackedBytes {
  FileBytes file = FileBytes::own({}, "");
  int64_t first = 0, stored = 0;  ///< place and bytes of the deflate stream
  int64_t bytes = 0;              ///< inflated, at most kMostInflation * stored
  uint32_t crc = 0;               ///< CRC-32 of the inflated bytes
  std::string name{};             ///< file and member, for messages

  std::mutex mutex{};
  std::optional<FileBytes> inflated{};  ///< guarded by mutex

  const FileBytes& content();
};

/// The chunks of an HDF5 data set, or the strips or tiles of TIFF's pages.
struct ChunkTable {
  const uint64_t id = next_id();  ///< unique in the process: ChunkCache's key
  /// HDF5 uses the first three; TIFF uses deflate and the others (tiff_codecs.h).
  enum class Filter : uint8_t {
    deflate,
    shuffle,
    checksum,
    lzw,
    packbits,
    difference,
    float_difference
  };
  struct Chunk {
    int64_t first = 0, bytes = 0;  ///< as stored
    uint32_t skipped = 0;          ///< bit i: filter i was not applied
  };
  std::vector<int64_t> shape;         ///< extents of a chunk; chunks at the edges are stored whole
  bool short_edges = false;           ///< instead, chunks at the edges end where the array does
  int64_t samples = 1;                ///< values per TIFF pixel; the last extent if several
  std::vector<Filter> filters{};      ///< in the order of application when writing
  bool bare_edges = false;            ///< chunks that extend beyond the array have no filters
  std::map<int64_t, Chunk> chunks{};  ///< by their number in the grid, row-major; missing chunks
                                      ///< have the fill value

 private:
  static uint64_t next_id();
};

class Frames;

struct StoredArray {
  ArrayInfo info;
  bool swapped = false;        ///< big endian
  bool first_fastest = false;  ///< Fortran order: the first dimension is contiguous

  // One of the next five is set; with none of them every element is `fill`.
  std::optional<FileBytes> file{};  ///< holds the elements at `first`, or the chunks
  int64_t first = 0;
  /// Distance between elements of the first dimension, for NetCDF's records; 0: contiguous.
  int64_t row_bytes = 0;
  std::shared_ptr<PackedBytes> packed{};       ///< shared and not const, unlike ArrayFile's content
  std::shared_ptr<const ChunkTable> chunks{};  ///< shared only because it is large
  std::shared_ptr<const Frames> frames{};      ///< a trajectory, shared by copies of the array
  bool with_cells = false;                     ///< rows of `frames` end with the unit cell
  /// The written part of the array, with smaller extents; beyond it is `fill`. Shared by copies of
  /// this array.
  std::shared_ptr<const StoredArray> written{};
  std::vector<uint8_t> fill{};  ///< one element as stored; empty: zero

  /// For npz: the checksum of the whole member (header included), and its place.
  std::optional<uint32_t> member_crc{};
  int64_t member_first = 0, member_bytes = 0;
};

/// Sets info.problem if elements() * size overflows or exceeds `held`, the largest size that the
/// file can hold.
void check_announced(ArrayInfo& info, int64_t held);

/// Reads a slab of a checked array, converted to native byte order. `cache` may be null.
void read_stored(const StoredArray& array, const std::string& file, const Slab& slab, uint8_t* out,
                 ChunkCache* cache);
/// Returns the slab's place in memory if it lies there contiguous and as read_stored() would write
/// it; else null.
const uint8_t* view_stored(const StoredArray& array, const Slab& slab);

}  // namespace tutti::data
