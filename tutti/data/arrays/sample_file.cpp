#include "tutti/data/arrays/sample_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tutti::data {
namespace {

/// "[2, 3, 4]": the place of element `at` of a row-major array.
std::string index_text(const Shape& shape, int64_t at) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(shape[static_cast<int>(d)], 1);
    index[d] = at % extent;
    at /= extent;
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

/// Exponent bits all set, without a branch for each value, so that sound data cost little.
bool all_finite(const float* values, int64_t count) {
  bool sound = true;
  for (int64_t i = 0; i < count; ++i)
    sound &= (std::bit_cast<uint32_t>(values[i]) & 0x7F800000u) != 0x7F800000u;
  return sound;
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
            fmt::format("{}: the value at {} of '{}' is {}, expected finite numbers (of f32): "
                        "leave the sample out, or give 'missing V' in its line of data.fields, "
                        "which replaces NaN",
                        what, index_text(field.shape, i), field.name, value));
  });
}

void check_classes(const Field& field, const void* values, const Elements& of,
                   const std::string& what) {
  const auto classes = static_cast<double>(field.class_names.size());
  with_elements(field.element, values, [&](const auto* x) {
    for (int64_t i = of.first; i < of.last; ++i) {
      const auto number = static_cast<double>(static_cast<float>(x[i]));
      if (number < 0 || number >= classes || number != std::floor(number))
        throw BadFile(fmt::format(
            "{}: the value at {} of '{}' is {}, expected a class number from 0 to {}: correct the "
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
        fmt::format("{} has {} elements a sample, which is not 'as {}': correct its line "
                    "of data.fields",
                    what, elements, fmt::join(words, " ")));
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
