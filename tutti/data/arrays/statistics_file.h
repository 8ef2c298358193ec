#pragma once
// Means, deviations and extremes of fields from a file: what 'normalise' and 'min-max' without
// numbers take.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

/// Reads an array file (HDF5, npz ...) or a .json of nested names and lists of numbers. For each
/// line, the first of these prefixes under which there is anything counts: FIELD/, the path of its
/// array /, the group of its array /, none; under it the names mean; std, or sqmean (the mean of
/// the squares); min or minval; max or maxval. Fields of class numbers have none. One number a
/// channel, or one; of u8, of the values divided by 255. BadFile where the file holds none for any
/// field, or numbers that make no sense.
std::vector<FieldStatistics> read_statistics(const std::filesystem::path& file,
                                             const std::vector<FieldLine>& lines);

/// The same as JSON text. `statistics`: of each field; those without any are left out.
std::string statistics_json(const std::vector<Field>& fields,
                            const std::vector<FieldStatistics>& statistics);

}  // namespace tutti::data
