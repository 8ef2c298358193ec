#include "tutti/data/arrays/sample_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tutti::data {
namespace {

/// Returns " at [2, 3, 4]", the index of element `at` of a row-major array; "" if it is the only
/// one.
std::string index_text(const Shape& shape, int64_t at) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(shape[static_cast<int>(d)], 1);
    index[d] = at % extent;
    at /= extent;
  }
  return index.empty() ? "" : fmt::format(" at [{}]", fmt::join(index, ", "));
}

/// Returns the largest of key(0) ... key(count - 1). It uses independent lanes, which the compiler
/// puts into one register, so that checking costs little more than loading the data.
template <class Key>
auto largest_key(int64_t count, Key key) {
  using T = decltype(key(0));
  constexpr int64_t kLanes = 64 / sizeof(T);
  std::array<T, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) {
      const T one = key(i + k);
      lanes[static_cast<size_t>(k)] = std::max(lanes[static_cast<size_t>(k)], one);
    }
  T largest = *std::ranges::max_element(lanes);
  for (; i < count; ++i) largest = std::max<T>(largest, key(i));
  return largest;
}

/// A value is finite unless all its exponent bits are set.
bool all_finite(const float* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7F800000u;
  return largest_key(count, [&](int64_t i) {
           return std::bit_cast<uint32_t>(values[i]) & kExponent;
         }) != kExponent;
}

void check_finite(const Field& field, const void* values, const Elements& of,
                  const std::string& what) {
  if (is_integer(field.element) ||
      (field.element == ElementType::f32 &&
       all_finite(static_cast<const float*>(values) + of.first, of.last - of.first)))
    return;
  with_elements(field.element, values, [&](const auto* x) {
    for (int64_t i = of.first; i < of.last; ++i)
      if (const auto value = static_cast<float>(x[i]); !std::isfinite(value))
        throw BadFile(
            "{}: the value{} of '{}' is {}, expected finite numbers (of f32): leave the sample "
            "out, or {}",
            what, index_text(field.shape, i), field.name, value,
            std::isnan(value) ? "give 'missing V' in its line of data.fields, which replaces NaN"
                              : "write a number in its place when the file is made (numpy.clip), "
                                "or NaN, which 'missing' in its line of data.fields replaces");
  });
}

/// Says likewise whether all are whole numbers in [0, classes).
template <class T>
bool all_classes(const T* numbers, int64_t count, size_t classes) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<T>;
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<T>::max());
    if (classes == 0) return count == 0;
    const auto last = static_cast<U>(std::min<uint64_t>(classes - 1, most));
    return largest_key(count, [&](int64_t i) { return static_cast<U>(numbers[i]); }) <= last;
  }
  return false;  // the caller checks one by one
}

void check_classes(const Field& field, const void* values, const Elements& of,
                   const std::string& what) {
  const auto classes = static_cast<double>(field.class_names.size());
  with_elements(field.element, values, [&](const auto* x) {
    if (all_classes(x + of.first, of.last - of.first, field.class_names.size())) return;
    for (int64_t i = of.first; i < of.last; ++i) {
      const auto number = static_cast<double>(static_cast<float>(x[i]));
      if (number < 0 || number >= classes || number != std::floor(number))
        throw ConfigError(fmt::format(
            "{}: the value{} of '{}' is {}, expected a class number from 0 to {}: correct the "
            "file, or 'classes' in its line of data.fields",
            what, index_text(field.shape, i), field.name, number, field.class_names.size() - 1));
    }
  });
}

}  // namespace

std::vector<int64_t> shaped(const std::vector<int64_t>& as, int64_t elements,
                            const std::string& what) {
  const int64_t open = std::ranges::count(as, FieldLine::kAnyExtent);
  std::vector<int64_t> shape = as;
  double known = 1;
  for (const int64_t extent : as) known *= extent > 0 ? static_cast<double>(extent) : 1;
  const double side = open == 0 ? 1
                                : std::round(std::pow(static_cast<double>(elements) / known,
                                                      1.0 / static_cast<double>(open)));
  if (side < 1 ||
      std::pow(side, static_cast<double>(open)) * known != static_cast<double>(elements)) {
    std::vector<std::string> words;
    for (const int64_t extent : as) words.push_back(extent > 0 ? std::to_string(extent) : "?");
    throw BadFile(
        "{} has {} elements a sample, which is not 'as {}': correct its line of data.fields", what,
        elements, fmt::join(words, " "));
  }
  std::ranges::replace(shape, FieldLine::kAnyExtent, static_cast<int64_t>(side));
  return shape;
}

void check_field_values(const Field& field, const void* values, const Elements& of,
                        const std::string& what) {
  check_finite(field, values, of, what);
  if (!field.class_names.empty()) check_classes(field, values, of, what);
}

}  // namespace tutti::data
