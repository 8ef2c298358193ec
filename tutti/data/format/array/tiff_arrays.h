#pragma once
// TIFF files (TIFF 6.0 and BigTIFF) as arrays, by a reader of our own.

#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Whether the first bytes are those of a TIFF file in either byte order.
bool is_tiff(std::span<const uint8_t> head);

/// The pages that are like the first one as the array `image`: [pages, H, W], of several samples a
/// pixel [pages, H, W, C], or [pages, C, H, W] where these lie in planes; of a page that is a
/// volume [pages, D, H, W]; without the first extent where the file has one page alone. Where the
/// file's description (ImageJ's, OME's, tifffile's) says how pages make up a stack, its extents
/// stand in the place of the first one; planes that it says lie behind the only page are read, too,
/// and where it speaks of more than the file has, that is the array's problem. Other pages, such as
/// reduced ones, are arrays of their own, `page3`, counted from 0; SubIFDs are `level1` and so on.
/// Values are as stored: palettes and inverted scales are not applied.
///
/// Strips and tiles; integers of 8 to 64 bits, f16, f32, f64; uncompressed, LZW, deflate and
/// PackBits with predictors 1 to 3; in either byte order. Anything else is listed with a problem.
/// BadFile.
std::vector<StoredArray> read_tiff(const FileBytes& file);

}  // namespace tutti::data
