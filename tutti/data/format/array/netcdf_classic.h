#pragma once
// Reads classic NetCDF: CDF-1, CDF-2 (64-bit places) and CDF-5 (64-bit sizes), common in AMBER and
// climate science. Big endian. A header (number of records, dimensions, attributes, variables with
// their places) precedes the elements. Each variable is contiguous, except that variables along the
// record dimension lie record by record, one after the other within a record.

#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

bool is_netcdf_classic(std::span<const uint8_t> head);

/// Lists all variables. Texts, and variables beyond the file's end, are listed with a problem.
/// BadFile if the header itself is damaged.
std::vector<StoredArray> read_netcdf_classic(const FileBytes& file);

}  // namespace tutti::data
