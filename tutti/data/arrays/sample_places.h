#pragma once
// Decides where the samples lie in the files of a data set: one per file, or along an axis.

#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Settles the places that lines leave unsaid, from the headers of some of the `files` files (the
/// first one first):
///   - if a line says 'axis', a line without a place is counted along its first axis if that has as
///     many elements, and otherwise belongs to every sample of the file;
///   - if a line says 'cut', a line without a place belongs to every block of the file;
///   - if a line says 'whole' and none says anything else, all are whole;
///   - if no line says anything, an 'as' decides that fits either one sample along the first axis
///     or the whole array, but not both. Else the first axis counts the samples if it has the same
///     extent in all fields and either there is one file, or it is named time, or a field has no
///     other axis (a number a sample), or files differ in it, or the fields' second axes differ
///     (60x24x24 and 60x3). Otherwise each file is a sample.
/// Returns the decision, for the log. BadFile if an array is missing.
std::string settle_places(std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                          int64_t files);

/// Says whether every file is one sample, so that nothing is counted.
bool one_sample_a_file(const std::vector<FieldLine>& lines);

}  // namespace tutti::data
