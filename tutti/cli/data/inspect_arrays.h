#pragma once
// Lists an array file for `tutti data inspect`, and formats the lines that its other listings
// share.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/data/data_suggestion.h"

namespace tutti::cli {

/// The least and the greatest value, as a field has them.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t not_finite = 0;
  int64_t missing = 0;  ///< set by the caller, who leaves these values out of add()

  void add(std::span<const float> values);
  std::string to_string() const;
};

/// The listing of a file, and those of its arrays that may be fields.
struct Inspected {
  std::string text;
  std::vector<FoundArray> arrays;
};

/// Returns "60x24x24", or "one number".
std::string extents_text(std::span<const int64_t> shape);
/// Returns a line of a listing, with columns.
std::string inspected_line(std::string_view name, std::string_view type, const std::string& shape,
                           const std::string& values);

/// Lists a file. Values are those that a field gets: unpacked by scale_factor and add_offset, and
/// without missing ones. Throws BadFile.
Inspected inspect_arrays(const std::filesystem::path& path);

}  // namespace tutti::cli
