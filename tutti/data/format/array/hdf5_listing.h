#pragma once
// An Hdf5Listing has the headers of an HDF5 file as HDF5's library reads them. It can be sent as
// bytes, because a child process does the reading.

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

struct Hdf5DataSet {
  enum class Layout : uint8_t { contiguous, compact, chunked };
  struct Chunk {
    int64_t number = 0;  ///< in the grid, row-major
    int64_t first = 0, bytes = 0;
    uint32_t skipped = 0;
  };

  ArrayInfo info;      ///< includes info.chunk
  std::string file{};  ///< target of an external link to another file
  bool swapped = false;
  Layout layout = Layout::contiguous;
  int64_t first = -1;              ///< contiguous: place in the file; -1: never written
  std::vector<uint8_t> inside{};   ///< compact: the elements
  std::vector<uint8_t> filters{};  ///< ChunkTable::Filter
  bool bare_edges = false;
  std::vector<Chunk> chunks{};
  std::vector<uint8_t> fill{};       ///< one element as stored
  std::vector<uint8_t> unlimited{};  ///< for each dimension: may its extent grow
};

struct Hdf5Listing {
  std::vector<Hdf5DataSet> sets{};
  NameCircles circles{};
  bool netcdf = false;  ///< written by NetCDF-4's library, or in its way
  std::string error{};  ///< why the file could not be read; empty: no error
  bool damaged = true;  ///< the error gives no better reason than damage
};

/// Walks the headers with HDF5's library, which may crash on a damaged file and allows one caller
/// at a time: the caller holds hdf5_mutex() (hdf5_probe.h). A data set is listed by each of its
/// names (hdf5_links.h). Faults of the file never throw.
Hdf5Listing walk_hdf5(const std::filesystem::path& path, int64_t file_bytes);

std::vector<uint8_t> to_bytes(const Hdf5Listing& listing);
/// Parses such bytes. BadFile if they are no complete listing.
Hdf5Listing hdf5_listing_from(std::span<const uint8_t> bytes, const std::string& file);

}  // namespace tutti::data
