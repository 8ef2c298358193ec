#pragma once
// Hdf5Listing: what the headers of an HDF5 file say, as HDF5's library reads them, and the same as
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

  ArrayInfo info;      ///< info.chunk included
  std::string file{};  ///< that it lies in, where an external link leads to another one
  bool swapped = false;
  Layout layout = Layout::contiguous;
  int64_t first = -1;              ///< contiguous: place in the file; -1: never written
  std::vector<uint8_t> inside{};   ///< compact: the elements
  std::vector<uint8_t> filters{};  ///< ChunkTable::Filter
  bool bare_edges = false;
  std::vector<Chunk> chunks{};
  std::vector<uint8_t> fill{};       ///< one element as stored
  std::vector<uint8_t> unlimited{};  ///< whether an extent may grow, one each
};

struct Hdf5Listing {
  std::vector<Hdf5DataSet> sets{};
  NameCircles circles{};
  bool netcdf = false;  ///< NetCDF-4's library wrote it, or one that does as it does
  std::string error{};  ///< why the file could not be read; empty: it could
  bool damaged = true;  ///< the error says nothing better than that
};

/// Walks the headers with HDF5's library, which may crash on a damaged file, and which takes one
/// caller at a time: the caller holds hdf5_mutex() (hdf5_probe.h). Data sets are listed by
/// each of their names (hdf5_links.h). Never throws for what is wrong with the file.
Hdf5Listing walk_hdf5(const std::filesystem::path& path, int64_t file_bytes);

std::vector<uint8_t> to_bytes(const Hdf5Listing& listing);
/// BadFile if the bytes are no whole listing.
Hdf5Listing hdf5_listing_from(std::span<const uint8_t> bytes, const std::string& file);

}  // namespace tutti::data
