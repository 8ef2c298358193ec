#pragma once
// Applies NetCDF's conventions for the values of a variable, in netCDF4-python's order: _Unsigned
// (when a file is opened, array_file.h); _FillValue, missing_value, default fill values,
// valid_range, valid_min and valid_max, all for stored values; then scale_factor and add_offset.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Says how stored values become numbers: stored * scale + offset, in double precision.
struct ValueCoding {
  double scale = 1, offset = 0;
  std::vector<double> missing{};  ///< stored values that mean "missing", besides NaN
  /// Stored values outside this range are missing.
  double least = -std::numeric_limits<double>::infinity(), most = -least;

  bool scaled() const { return scale != 1 || offset != 0; }
  /// Says whether values other than NaN may be missing.
  bool masks() const { return !missing.empty() || std::isfinite(least) || std::isfinite(most); }
  bool is_missing(double stored) const;
};

/// Builds the coding from the array's attributes. Variables of NetCDF without _FillValue have
/// NetCDF's default one, except variables of single bytes, whose range is too small to lose a
/// value, and variables that `_Unsigned` made unsigned, as in netCDF4-python. Ignores invalid
/// attributes: texts, several numbers instead of one, and numbers that the array's type cannot hold
/// (if the scale or the offset is ignored, so is the other). Attributes of floating-point variables
/// are rounded to their type, while netCDF4-python ignores those that rounding changes.
ValueCoding value_coding(const ArrayInfo& info);

/// Converts to a value of the array's type; nothing if the type cannot hold it.
std::optional<double> stored_number(ElementType type, double value);

/// Returns the attributes that value_coding() ignores, for a warning like netCDF4-python's.
std::vector<std::string> passed_over(const ArrayInfo& info);

/// Says whether the stored values need no change except for NaN.
bool is_plain(const ValueCoding& coding);

/// Converts `count` stored elements to f32, and missing ones to `replacement`. Without a
/// replacement it returns the index of the first missing element; otherwise, or if there is none,
/// -1.
int64_t decode_values(const ValueCoding& coding, ElementType type, const void* stored,
                      int64_t count, std::optional<double> replacement, float* out);

/// Does the same for values that keep their type: replaces the missing ones in place.
int64_t replace_missing(const ValueCoding& coding, ElementType type, void* values, int64_t count,
                        std::optional<double> replacement);

}  // namespace tutti::data
