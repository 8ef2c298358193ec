#pragma once
// What `tutti data inspect` says about an array file, and the lines that all its listings have.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/data_suggestion.h"

namespace tutti {

/// Of values as a field has them.
struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t not_finite = 0, missing = 0;

  void add(std::span<const float> values);
  std::string to_string() const;
};

/// What the file lists, and what of it may be a field.
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
