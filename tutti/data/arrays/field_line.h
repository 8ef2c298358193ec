#pragma once
// FieldLine describes one field of a data set of array files, by a line of the configuration:
//
//   "image: from images"                    one array; its first axis counts the samples, or each
//                                           file is one sample: the files decide
//   "data: from TMQ, U850, V850"            arrays of one shape, stacked along a new first axis
//   "mask: from climate/labels_0 classes 3" class numbers; "classes sea, land" names them
//
// followed by these, in any order:
//   axis K             axis K counts the samples and is not part of a sample
//   whole              the whole array belongs to each sample of its file
//   cut E ...          blocks of these extents along the first axes; each block is a sample
//   as [TYPE] [E ...]  the extents of a sample, with as many elements as stored; for bytes of a
//                      TFRecord also the type. ? is an extent that follows from the first file
//   missing V          replaces NaN, _FillValue and missing_value; without it they are an error
// Names with blanks, commas or a colon are put in '...'.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/element_type.h"

namespace tutti::data {

struct FieldLine {
  /// Where samples lie in an array. unsaid: the files decide.
  enum class Place : uint8_t { unset, whole, axis, cut };
  static constexpr int64_t kAnyExtent = -1;

  std::string field{};
  std::vector<std::string> arrays{};  ///< at least one
  Place place = Place::unset;
  int axis = 0;
  std::vector<int64_t> cut{};
  std::optional<ElementType> type{};
  std::optional<std::vector<int64_t>> shape{};  ///< shape of a sample
  std::vector<std::string> class_names{};
  std::optional<double> missing{};
};

/// Parses a line. ConfigError naming the text and the word that is not understood.
FieldLine parse_field_line(std::string_view text);
/// Parses all lines of a configuration; ConfigError if two name the same field.
std::vector<FieldLine> parse_field_lines(const std::vector<std::string>& texts);

}  // namespace tutti::data
