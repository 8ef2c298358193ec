#pragma once
// Reads TIFF files (TIFF 6.0 and BigTIFF) as arrays, without a library.

#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Says whether the first bytes are those of a TIFF file in either byte order.
bool is_tiff(std::span<const uint8_t> head);

/// Returns the pages that are like the first one as the array `image`: [pages, H, W]; with several
/// samples per pixel [pages, H, W, C], or [pages, C, H, W] if these lie in planes; [pages, D, H, W]
/// if a page is a volume; without the first extent if the file has a single page. If the file's
/// description (ImageJ's, OME's, tifffile's) says how pages make up a stack, its extents replace
/// the first one; planes that it places behind a single page are read too, and if it claims more
/// than the file has, this is the array's problem. Other pages, such as reduced ones, are arrays
/// `page3`, counted from 0; SubIFDs are `level1` and so on. Values are as stored: palettes and
/// inverted scales are not applied.
///
/// Supports strips and tiles; integers of 8 to 64 bits, f16, f32, f64; uncompressed, LZW, deflate
/// and PackBits with predictors 1 to 3; in either byte order. Anything else is listed with a
/// problem. BadFile.
std::vector<StoredArray> read_tiff(const FileBytes& file);

}  // namespace tutti::data
