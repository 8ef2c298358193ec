#pragma once
// Reads from a TIFF file's description how many pages there are, and how they make up a stack.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/format/array/tiff_directory.h"

namespace tutti::data {

struct TiffStack {
  /// The slowest first, without extents of 1: ImageJ's frames, slices and channels, OME's axes
  /// except X and Y, the first extents of tifffile's shape, MetaMorph's planes.
  std::vector<int64_t> extents{};
  std::string said{};       ///< "ImageJ's images=8"; empty: no description
  bool one_behind = false;  ///< one directory may stand for several consecutive planes
  bool of_several = false;  ///< planes of several images: extents have no meaning
  bool in_files = false;    ///< planes lie in several files, named by OME

  int64_t planes() const;
};

/// Parses the first page's description. Invalid text counts as none.
TiffStack tiff_stack(const TiffPage& first);

}  // namespace tutti::data
