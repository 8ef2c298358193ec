#pragma once
// Where the samples lie in the files of a data set: each file one, or counted along an axis.

#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Settles the places that lines leave unsaid, by the headers of some of the `files` files (the
/// first one first):
///   - a line says 'axis': a line without a place is counted along its first axis where that has as
///     many elements, and otherwise belongs to every sample of the file;
///   - a line says 'cut': a line without a place belongs to every block of the file;
///   - a line says 'whole', and no other says anything else: all are whole;
///   - no line says anything: an 'as' that fits one sample along the first axis, or the whole
///     array, but not both, decides. Else the first axis counts the samples if it has the same
///     extent in all fields and either there is one file, or it is named time, or a field has no
///     other axis (a number a sample), or files differ in it, or the fields' second axes differ
///     (60x24x24 and 60x3). Otherwise each file is a sample.
/// Returns what was found, for the log. BadFile where an array is not there.
std::string settle_places(std::vector<FieldLine>& lines, const std::vector<ArrayFile>& some,
                          int64_t files);

/// Whether every file is one sample: nothing is counted.
bool one_sample_a_file(const std::vector<FieldLine>& lines);

}  // namespace tutti::data
