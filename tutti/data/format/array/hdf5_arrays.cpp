#include "tutti/data/format/array/hdf5_arrays.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/inflate.h"
#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/hdf5_listing.h"
#include "tutti/data/format/array/hdf5_probe.h"
#include "tutti/data/format/array/netcdf_fill.h"

namespace tutti::data {
namespace {

/// Turns the library's listing into places that lie within the file.
class Hdf5Checks {
 public:
  explicit Hdf5Checks(const FileBytes& file) : file_(file) {}

  StoredArray checked(Hdf5DataSet&& set) const {
    StoredArray array;
    array.info = std::move(set.info);
    array.swapped = set.swapped;
    array.fill = std::move(set.fill);
    if (!array.info.problem.empty()) return array;
    if (array.fill.size() != size_of(array.info.type)) array.fill.clear();
    switch (set.layout) {
      case Hdf5DataSet::Layout::contiguous: contiguous(set, array); break;
      case Hdf5DataSet::Layout::compact: compact(set, array); break;
      case Hdf5DataSet::Layout::chunked: chunked(set, array); break;
    }
    return array;
  }

 private:
  bool within(int64_t first, int64_t bytes) const {
    return first >= 0 && bytes >= 0 && first <= file_.size() && bytes <= file_.size() - first;
  }

  void contiguous(const Hdf5DataSet& set, StoredArray& array) const {
    check_announced(array.info, set.first < 0 ? most_filled() : file_.size());
    if (!array.info.problem.empty() || set.first < 0) return;
    if (!within(set.first, array.info.bytes())) {
      array.info.problem = fmt::format(
          "its {} bytes at {} go beyond the end of the file at {}: it is truncated; fetch it again",
          array.info.bytes(), set.first, file_.size());
      return;
    }
    array.file = file_;
    array.first = set.first;
  }

  void compact(Hdf5DataSet& set, StoredArray& array) const {
    check_announced(array.info, std::ssize(set.inside));
    array.file = FileBytes::own(std::move(set.inside), file_.name());
  }

  void chunked(const Hdf5DataSet& set, StoredArray& array) const {
    check_announced(array.info, most_filled());
    ArrayInfo one{.name = {}, .type = array.info.type, .shape = array.info.chunk};
    constexpr int64_t kMostChunk = int64_t{1} << 32;  // HDF5's own limit
    check_announced(one, std::min(kMostChunk, most_filled()));
    if (!one.problem.empty() || std::ranges::find(one.shape, 0) != one.shape.end())
      array.info.problem = fmt::format("its chunks are not sound: {}", one.problem);
    if (!array.info.problem.empty()) return;
    auto table = std::make_shared<ChunkTable>();
    table->shape = array.info.chunk;
    table->bare_edges = set.bare_edges;
    for (const uint8_t filter : set.filters)
      table->filters.push_back(static_cast<ChunkTable::Filter>(filter));
    for (const Hdf5DataSet::Chunk& chunk : set.chunks) {
      if (!within(chunk.first, chunk.bytes)) {
        array.info.problem = fmt::format(
            "chunk {}, {} bytes at {}, goes beyond the end of the file at {}: it is truncated; "
            "fetch it again",
            chunk.number, chunk.bytes, chunk.first, file_.size());
        return;
      }
      table->chunks[chunk.number] = {
          .first = chunk.first, .bytes = chunk.bytes, .skipped = chunk.skipped};
    }
    array.file = file_;
    array.chunks = std::move(table);
  }

  /// If missing parts have a fill value, nothing in the file bounds the array's size: it may not
  /// exceed the best compression of the whole file.
  int64_t most_filled() const { return file_.size() * kMostInflation; }

  const FileBytes& file_;
};

/// Says whether dimension `d` may grow and has a name that other arrays can share.
bool is_unlimited(const Hdf5DataSet& set, size_t d) {
  return set.file.empty() && d < set.info.dimensions.size() && !set.info.dimensions[d].empty() &&
         d < set.unlimited.size() && set.unlimited[d] != 0;
}

/// Returns, for each growable dimension, the largest extent along it in the file.
std::map<std::string, int64_t> unlimited_lengths(const std::vector<Hdf5DataSet>& sets) {
  std::map<std::string, int64_t> lengths;
  for (const Hdf5DataSet& set : sets)
    for (size_t d = 0; d < set.info.shape.size(); ++d)
      if (is_unlimited(set, d)) {
        int64_t& length = lengths[set.info.dimensions[d]];
        length = std::max(length, set.info.shape[d]);
      }
  return lengths;
}

/// Extends the array to its dimensions' lengths. If no fill value is stored, NetCDF's library uses
/// its default beyond the written part, also for variables that were made with NOFILL.
StoredArray lengthened(StoredArray written, std::vector<int64_t> shape, int64_t most_bytes) {
  if (!written.info.problem.empty() || shape == written.info.shape) return written;
  StoredArray array;
  array.info = written.info;
  array.info.shape = std::move(shape);
  array.swapped = written.swapped;
  array.fill = written.fill;
  if (array.fill.empty()) {
    array.fill = netcdf_fill(array.info.type);
    if (array.swapped) swap_bytes(array.fill, array.fill.size());
  }
  if (array.fill.empty())
    array.info.problem = fmt::format(
        "its extents are [{}] where its dimensions have [{}], and no fill value says what the rest "
        "is, as NetCDF has none of {}: write it as far as they go",
        fmt::join(written.info.shape, ", "), fmt::join(array.info.shape, ", "),
        name_of(array.info.type));
  check_announced(array.info, most_bytes);
  array.written = std::make_shared<const StoredArray>(std::move(written));
  return array;
}

}  // namespace

bool is_hdf5(const FileBytes& file) {
  constexpr uint8_t kSignature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  uint8_t found[8];
  for (int64_t at = 0; at <= file.size() - 8; at = at == 0 ? 512 : 2 * at) {
    file.read(at, found);
    if (std::memcmp(found, kSignature, 8) == 0) return true;
  }
  return false;
}

std::vector<StoredArray> read_hdf5(const FileBytes& file, const ArrayFileOptions& options,
                                   NameCircles* circles) {
  const std::filesystem::path path = file.name();
  Hdf5Listing listing;
  if (options.probe) {
    listing = probe_hdf5(path, file.size(), options.probe_seconds);
  } else {
    const std::lock_guard lock(hdf5_mutex());
    listing = walk_hdf5(path, file.size());
  }
  if (!listing.error.empty() && listing.damaged)
    throw BadFile(unreadable(file, Content::hdf5,
                             fmt::format("expected an HDF5 file, found one of {} bytes that cannot "
                                         "be read: {}",
                                         file.size(), listing.error)));
  if (!listing.error.empty())
    throw BadFile("{}: the HDF5 file cannot be read: {}", file.name(), listing.error);
  std::map<std::string, FileBytes> files;  // targets of external links, and this file as ""
  files.emplace("", file);
  if (circles != nullptr) *circles = std::move(listing.circles);
  const auto lengths =
      listing.netcdf ? unlimited_lengths(listing.sets) : std::map<std::string, int64_t>();
  std::vector<StoredArray> arrays;
  for (Hdf5DataSet& set : listing.sets) {
    std::vector<int64_t> shape = set.info.shape;
    for (size_t d = 0; listing.netcdf && d < shape.size(); ++d)
      if (is_unlimited(set, d)) shape[d] = lengths.at(set.info.dimensions[d]);
    auto own = files.find(set.file);
    if (own == files.end()) try {
        own = files.emplace(set.file, FileBytes::open(set.file)).first;
      } catch (const IoError& error) {  // the other arrays may be sound
        own = files.find("");
        set.info.problem = error.what();
      }
    arrays.push_back(lengthened(Hdf5Checks(own->second).checked(std::move(set)), std::move(shape),
                                file.size() * kMostInflation));
  }
  return arrays;
}

}  // namespace tutti::data
