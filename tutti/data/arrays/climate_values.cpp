#include "tutti/data/arrays/climate_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace tutti::data {
namespace {

constexpr double kNetcdfFill = 9.969209968386869e36;  // NC_FILL_FLOAT and NC_FILL_DOUBLE

double first_number(const ArrayInfo& info, const char* name, double otherwise) {
  const auto found = info.attributes.find(name);
  return found != info.attributes.end() && found->second.numbers.size() == 1 &&
                 std::isfinite(found->second.numbers[0])
             ? found->second.numbers[0]
             : otherwise;
}

/// Halves become numbers by way of f32.
template <class T>
double number_of(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(static_cast<float>(x));
}

template <class T>
T number_as(double x) {
  if constexpr (std::is_same_v<T, Half>)
    return Half{};  // refused when the file was opened
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(x);
  else
    return T(static_cast<float>(x));
}

}  // namespace

bool ValueCoding::is_missing(double stored) const {
  return std::isnan(stored) || std::ranges::find(missing, stored) != missing.end();
}

ValueCoding value_coding(const ArrayInfo& info) {
  ValueCoding coding{.scale = first_number(info, "scale_factor", 1),
                     .offset = first_number(info, "add_offset", 0)};
  for (const char* name : {"_FillValue", "missing_value"})
    if (const auto found = info.attributes.find(name); found != info.attributes.end())
      for (double value : found->second.numbers) {
        // An attribute of another type means the value that the array can hold.
        if (info.type == ElementType::f32) value = static_cast<double>(static_cast<float>(value));
        coding.missing.push_back(value);
      }
  if (!info.dimensions.empty() && coding.missing.empty() && !is_integer(info.type))
    coding.missing.push_back(kNetcdfFill);
  return coding;
}

bool is_plain(const ValueCoding& coding) { return !coding.scaled() && coding.missing.empty(); }

int64_t decode_values(const ValueCoding& coding, ElementType type, const void* stored,
                      int64_t count, std::optional<double> replacement, float* out) {
  int64_t absent = -1;
  with_elements(type, stored, [&](const auto* x) {
    for (int64_t i = 0; i < count; ++i) {
      const double value = number_of(x[i]);
      if (!coding.is_missing(value)) {
        out[i] = static_cast<float>(value * coding.scale + coding.offset);
      } else if (replacement) {
        out[i] = static_cast<float>(*replacement);
      } else {
        absent = i;
        return;
      }
    }
  });
  return absent;
}

int64_t replace_missing(const ValueCoding& coding, ElementType type, void* values, int64_t count,
                        std::optional<double> replacement) {
  if (coding.missing.empty() && is_integer(type)) return -1;
  int64_t absent = -1;
  with_elements(type, values, [&](const auto* x) {
    using T = std::remove_cvref_t<decltype(*x)>;
    auto* changed = const_cast<T*>(x);
    for (int64_t i = 0; i < count; ++i) {
      if (!coding.is_missing(number_of(x[i]))) continue;
      if (!replacement) {
        absent = i;
        return;
      }
      changed[i] = number_as<T>(*replacement);
    }
  });
  return absent;
}

}  // namespace tutti::data
