#pragma once
// NetCDF's conventions say what the values of a variable mean. They hold in netCDF4-python's order:
// _Unsigned (when a file is opened, array_file.h); _FillValue, missing_value, default fill values,
// valid_range, valid_min and valid_max, all of stored values; then scale_factor and add_offset.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// How the stored values of an array become numbers: stored * scale + offset, in double precision.
struct ValueCoding {
  double scale = 1, offset = 0;
  std::vector<double> missing{};  ///< stored values that mean that there is none; NaN means so, too
  /// Stored values outside mean that there is none.
  double least = -std::numeric_limits<double>::infinity(), most = -least;

  bool scaled() const { return scale != 1 || offset != 0; }
  /// Whether values other than NaN may be missing.
  bool masks() const { return !missing.empty() || std::isfinite(least) || std::isfinite(most); }
  bool is_missing(double stored) const;
};

/// By the array's attributes. Variables of NetCDF without _FillValue have NetCDF's default one, but
/// for those of single bytes, whose range is too small to lose a value, and those that `_Unsigned`
/// made unsigned, as in netCDF4-python. Attributes that make no sense, those of text or of several
/// numbers for one, and those of numbers that the array's type cannot hold, are passed over
/// (without a scale that is one number the offset, too, and the reverse); those of floating-point
/// variables are rounded to their type, where netCDF4-python passes over what rounding changes.
ValueCoding value_coding(const ArrayInfo& info);

/// The attributes that value_coding() passes over, for a warning, as netCDF4-python gives one.
std::vector<std::string> passed_over(const ArrayInfo& info);

/// Whether the stored values are already what the network gets, but for NaN.
bool is_plain(const ValueCoding& coding);

/// `count` stored elements as f32. Missing ones become `replacement`. Returns the index of the
/// first missing one where there is no replacement, else -1.
int64_t decode_values(const ValueCoding& coding, ElementType type, const void* stored,
                      int64_t count, std::optional<double> replacement, float* out);

/// The same for values that keep their type: the missing ones are replaced in place.
int64_t replace_missing(const ValueCoding& coding, ElementType type, void* values, int64_t count,
                        std::optional<double> replacement);

}  // namespace tutti::data
