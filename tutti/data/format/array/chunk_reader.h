#pragma once
// Reads arrays that are stored in chunks: HDF5's, and the strips and tiles of TIFF.

#include <string>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

/// Reads a slab of an array with a table of chunks, in the file's byte order. `cache` may be null.
/// BadFile where a chunk is damaged.
void read_chunks(const StoredArray& array, const std::string& file, const Slab& slab,
                 ChunkCache* cache, uint8_t* out);

}  // namespace tutti::data
