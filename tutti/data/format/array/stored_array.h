#pragma once
// StoredArray: where the bytes of an array lie in its file. What a format's reader makes of its
// headers; ArrayFile reads any of them in the same way.

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

/// A deflated zip member: inflated whole when it is first read.
struct PackedBytes {
  FileBytes file = FileBytes::own({}, "");
  int64_t first = 0, stored = 0;  ///< of the deflate stream
  int64_t bytes = 0;              ///< inflated, at most kMostInflation * stored
  uint32_t crc = 0;               ///< CRC-32 of the inflated bytes
  std::string name{};             ///< file and member, for messages

  std::mutex mutex{};
  std::optional<FileBytes> inflated{};  ///< guarded by mutex

  const FileBytes& content();
};

/// The parts of an HDF5 data set or of TIFF's pages.
struct ChunkTable {
  const uint64_t id = next_id();  ///< another one for each table of the process: ChunkCache's key
  /// HDF5 has the first three; TIFF deflate and the others (tiff_codecs.h).
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
  std::vector<int64_t> shape;         ///< of a chunk; also those at the edge are stored whole,
  bool short_edges = false;           ///< unless they end where the array does
  int64_t samples = 1;                ///< TIFF's values of a pixel, the last extent if several
  std::vector<Filter> filters{};      ///< in the order in which they were applied when writing
  bool bare_edges = false;            ///< chunks that stick out of the array have no filters
  std::map<int64_t, Chunk> chunks{};  ///< by their number in the grid, row-major; others are filled

 private:
  static uint64_t next_id();
};

class Frames;

struct StoredArray {
  ArrayInfo info;
  bool swapped = false;        ///< big endian
  bool first_fastest = false;  ///< Fortran order: the first dimension is contiguous

  // One of the five; with none of them every element is `fill`.
  std::optional<FileBytes> file{};  ///< the elements lie at `first`; also that of the chunks
  int64_t first = 0;
  /// From one element of the first dimension to the next, as of NetCDF's records; 0: contiguous.
  int64_t row_bytes = 0;
  std::shared_ptr<PackedBytes> packed{};  ///< shared: ArrayFile's content is const, and this not
  std::shared_ptr<const ChunkTable> chunks{};  ///< shared only because it is large
  std::shared_ptr<const Frames> frames{};      ///< of a trajectory, shared by copies of the array
  bool with_cells = false;                     ///< rows of `frames` end with the unit cell
  /// The array as far as it was written, with smaller extents; beyond them is `fill`. Shared by
  /// copies of this one.
  std::shared_ptr<const StoredArray> written{};
  std::vector<uint8_t> fill{};  ///< one element as stored; empty: zero

  /// For npz: the whole member, for its checksum (header included).
  std::optional<uint32_t> member_crc{};
  int64_t member_first = 0, member_bytes = 0;
};

/// elements() * size, or a problem put into `info` where that overflows or is more than a file of
/// `held` bytes can hold.
void check_announced(ArrayInfo& info, int64_t held);

/// A slab of a checked array, converted to native byte order. `cache` may be null.
void read_stored(const StoredArray& array, const std::string& file, const Slab& slab, uint8_t* out,
                 ChunkCache* cache);
/// Where the slab lies in memory, contiguous and as read_stored() would write it; null if it does
/// not.
const uint8_t* view_stored(const StoredArray& array, const Slab& slab);

}  // namespace tutti::data
