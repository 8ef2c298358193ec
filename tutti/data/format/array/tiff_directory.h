#pragma once
// The directories of a TIFF file: what each page is, and where its strips or tiles lie.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// A page. Where several samples a pixel lie in planes of their own, these are the first axis of
/// its shape, else the last; a volume in one page has its depth before the rows.
struct TiffPage {
  ElementType element{};
  std::vector<int64_t> shape{};  ///< [C,] [D,] H, W [, C]
  std::vector<int64_t> part{};   ///< of a strip or tile, likewise
  size_t rows = 0;               ///< the axis of the rows
  int64_t samples = 1;           ///< values side by side, the last extent if several
  int64_t pixel_samples = 1;     ///< the same, or of planes how many there are
  std::vector<ChunkTable::Filter> filters{};
  bool strips = true;                      ///< the last one of a plane ends where the plane does
  bool reduced = false;                    ///< a smaller image of another page
  std::vector<ChunkTable::Chunk> parts{};  ///< in their order; none where there is a problem
  std::vector<int64_t> below{};            ///< places of its SubIFDs
  int64_t planes_said = 1;                 ///< by MetaMorph's tag: as many planes follow each other
  std::string description{};               ///< of the first page alone
  std::string problem{};                   ///< why it cannot be read; empty: it can
  bool described = false;  ///< extents and packing are known, so a problem is one of its bytes

  bool like(const TiffPage& other) const {
    return described && other.described && element == other.element && shape == other.shape &&
           part == other.part && filters == other.filters;
  }
  /// Counts the bytes of a strip or tile of `of_rows` rows; INT64_MAX where that overflows.
  int64_t part_bytes(int64_t of_rows) const;
};

struct TiffDirectories {
  bool big_endian = false;
  std::vector<TiffPage> pages{};
  /// Each page has its SubIFDs here: smaller versions of it, mostly.
  std::vector<std::vector<TiffPage>> below{};
};

/// Directories and their tables are read in blocks, so that a page costs a few calls. BadFile where
/// they are damaged or lead in a circle.
TiffDirectories read_tiff_directories(const FileBytes& file);

}  // namespace tutti::data
