#pragma once
// What NetCDF's CF conventions say about the values of a variable: scale_factor, add_offset,
// _FillValue, missing_value.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/format/array_file.h"

namespace tutti::data {

/// How the stored values of an array become numbers: stored * scale + offset, in double precision.
struct ValueCoding {
  double scale = 1, offset = 0;
  std::vector<double> missing{};  ///< stored values that mean that there is none; NaN means so, too

  bool scaled() const { return scale != 1 || offset != 0; }
  bool is_missing(double stored) const;
};

/// By the array's attributes. Floating-point variables of NetCDF also have NetCDF's own fill
/// value. Attributes that make no
/// sense are passed over.
ValueCoding value_coding(const ArrayInfo& info);

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
