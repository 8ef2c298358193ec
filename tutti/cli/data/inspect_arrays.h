#pragma once
// The listing that `tutti data inspect` makes of an array file, and the lines that its other
// listings have alike.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/data/data_suggestion.h"

namespace tutti {

/// The least and the greatest of values as a field has them.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t not_finite = 0;
  int64_t missing = 0;  ///< the caller's to set, who leaves these values out of add()

  void add(std::span<const float> values);
  std::string to_string() const;
};

/// The listing of a file, and the arrays of it that may be fields.
struct Inspected {
  std::string text;
  std::vector<FoundArray> arrays;
};

/// "60x24x24", or "one number".
std::string extents_text(std::span<const int64_t> shape);
/// A line of a listing, with columns.
std::string inspected_line(std::string_view name, std::string_view type, const std::string& shape,
                           const std::string& values);

/// Values are those that a field gets: unpacked by scale_factor and add_offset, and without those
/// that are missing. BadFile.
Inspected inspect_arrays(const std::filesystem::path& path);

}  // namespace tutti
