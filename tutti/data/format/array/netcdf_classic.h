#pragma once
// Classic NetCDF: CDF-1, CDF-2 (64-bit places) and CDF-5 (64-bit sizes), as AMBER and much of
// climate science writes them. Big endian. A header (numbers of records, dimensions, attributes,
// variables with their places), then each variable's elements, contiguous; those of variables along
// the record dimension lie record by record, the variables of a record one behind the other.

#include <span>
#include <vector>

#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

bool is_netcdf_classic(std::span<const uint8_t> head);

/// All variables. Text is listed with a problem, and so is what goes beyond the file's end. BadFile
/// where the header itself is damaged.
std::vector<StoredArray> read_netcdf_classic(const FileBytes& file);

}  // namespace tutti::data
