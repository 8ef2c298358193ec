#pragma once
// The description of a TIFF file may say how many pages there are, and how they make up a stack.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/data/format/array/tiff_directory.h"

namespace tutti::data {

struct TiffStack {
  /// The slowest comes first, and those of one are left out: ImageJ's frames, slices and channels,
  /// OME's axes but X and Y, the first extents of tifffile's shape, MetaMorph's planes.
  std::vector<int64_t> extents{};
  std::string said{};       ///< "ImageJ's images=8"; empty: nothing is said
  bool one_behind = false;  ///< one directory may stand for planes that lie one behind the other
  bool of_several = false;  ///< the planes of several images: their extents say nothing
  bool in_files = false;    ///< the planes lie in several files, by the names that OME gives them

  int64_t planes() const;
};

/// By the first page's description. What makes no sense says nothing.
TiffStack tiff_stack(const TiffPage& first);

}  // namespace tutti::data
