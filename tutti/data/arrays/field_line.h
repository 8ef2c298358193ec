#pragma once
// FieldLine: what a configuration says about one field of a data set of array files.
//
//   "image: from images"                    one array, whose first axis counts the samples, or whose
//                                           whole is one sample a file: what the files look like
//   "data: from TMQ, U850, V850"            several arrays alike, stacked along a new first axis
//   "mask: from climate/labels_0 classes 3" class numbers; "classes sea, land" names them
//
// behind that, in any order:
//   axis K             the samples are counted along axis K, which is not part of a sample
//   whole              the whole array belongs to the one sample of its file, or to each of them
//   cut E ...          blocks of these extents along the first axes; each block is a sample
//   as [TYPE] [E ...]  the extents of a sample, as many elements as are stored; of a TFRecord's bytes
//                      also their type. ? is an extent that follows from the first file
//   missing V          replaces NaN, _FillValue and missing_value; without it they are an error
// Names with blanks, commas or a colon stand in '...'.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/element_type.h"

namespace tutti::data {

struct FieldLine {
  /// Where samples lie in an array. unsaid: the files are looked at.
  enum class Place : uint8_t { unsaid, whole, axis, cut };
  static constexpr int64_t kAnyExtent = -1;

  std::string field{};
  std::vector<std::string> arrays{};  ///< at least one
  Place place = Place::unsaid;
  int axis = 0;
  std::vector<int64_t> cut{};
  std::optional<ElementType> type{};
  std::optional<std::vector<int64_t>> shape{};  ///< of a sample
  std::vector<std::string> class_names{};
  std::optional<double> missing{};
};

/// ConfigError naming the text and the word that cannot be understood.
FieldLine parse_field_line(std::string_view text);
/// All lines of a configuration; ConfigError where two name one field.
std::vector<FieldLine> parse_field_lines(const std::vector<std::string>& texts);

}  // namespace tutti::data
