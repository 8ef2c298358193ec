#pragma once
// Reads the directories of a TIFF file: the layout of each page, and where its strips or tiles lie.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// A page. If several samples per pixel lie in planes, these are the first axis of its shape, else
/// the last; a volume in one page has its depth before the rows.
struct TiffPage {
  ElementType element{};
  std::vector<int64_t> shape{};  ///< [C,] [D,] H, W [, C]
  std::vector<int64_t> part{};   ///< shape of a strip or tile, with the same axes
  size_t rows = 0;               ///< the axis of the rows
  int64_t samples = 1;           ///< values side by side, the last extent if several
  int64_t pixel_samples = 1;     ///< the same, or the number of planes
  std::vector<ChunkTable::Filter> filters{};
  bool strips = true;                      ///< the last strip of a plane is shorter
  bool reduced = false;                    ///< a smaller version of another page
  std::vector<ChunkTable::Chunk> parts{};  ///< in order; none if there is a problem
  std::vector<int64_t> below{};            ///< places of its SubIFDs
  int64_t planes_declared = 1;             ///< consecutive planes according to MetaMorph's tag
  std::string description{};               ///< only for the first page
  std::string problem{};                   ///< why it cannot be read; empty: no problem
  bool described = false;  ///< extents and packing are known, so a problem concerns its bytes

  bool like(const TiffPage& other) const {
    return described && other.described && element == other.element && shape == other.shape &&
           part == other.part && filters == other.filters;
  }
  /// Returns the bytes of a strip or tile of `of_rows` rows; INT64_MAX on overflow.
  int64_t part_bytes(int64_t of_rows) const;
};

struct TiffDirectories {
  bool big_endian = false;
  std::vector<TiffPage> pages{};
  /// The SubIFDs of each page: mostly smaller versions of it.
  std::vector<std::vector<TiffPage>> below{};
};

/// Reads directories and their tables in blocks, so that a page costs a few calls. BadFile where
/// they are damaged or lead in a circle.
TiffDirectories read_tiff_directories(const FileBytes& file);

}  // namespace tutti::data
