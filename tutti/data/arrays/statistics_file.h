#pragma once
// Reads means, deviations and extremes of fields from a file: the numbers for 'normalise' and
// 'min-max' that have none.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

/// Reads an array file (HDF5, npz ...) or a .json of nested names and lists of numbers. Each line
/// uses the first of these prefixes with any content: FIELD/, the path of its array /, the group of
/// its array /, none; the names under it are mean; std, or sqmean (the mean of the squares); min or
/// minval; max or maxval. Fields of class numbers have no statistics. There is one number per
/// channel, or one for all; for u8, of the values divided by 255. BadFile if the file has none for
/// any field, or invalid numbers.
std::vector<FieldStatistics> read_statistics(const std::filesystem::path& file,
                                             const std::vector<FieldLine>& lines);

/// Writes the same as JSON. `statistics`: one for each field; fields without any are left out.
std::string statistics_json(const std::vector<Field>& fields,
                            const std::vector<FieldStatistics>& statistics);

}  // namespace tutti::data
