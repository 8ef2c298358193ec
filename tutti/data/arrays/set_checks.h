#pragma once
// Helps tests to make data sets of files, and to read their samples.

#include <gtest/gtest.h>

#include <bit>
#include <type_traits>

#include "tutti/data/arrays/array_set.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/array/hdf5_arrays.h"

namespace tutti::data {

using Paths = std::vector<std::filesystem::path>;

inline std::unique_ptr<Dataset> set_of(const Paths& files, const std::vector<std::string>& lines) {
  return open_array_set(
      {.files = files, .fields = parse_field_lines(lines), .key = "data.train_files"});
}

/// Returns `count` rising numbers from `first` on.
template <class T>
std::vector<T> rising(int64_t count, int first = 0) {
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(first + static_cast<int>(i));
  return values;
}

template <class T>
constexpr ElementType element_type() {
  using enum ElementType;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? f32 : f64;
  constexpr ElementType kWhole[] = {i8, u8, i16, u16, i32, u32, i64, u64};
  return kWhole[2 * std::countr_zero(sizeof(T)) + std::is_unsigned_v<T>];
}

template <class T>
ArrayRef array_ref(std::string name, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {.name = std::move(name),
          .type = element_type<T>(),
          .shape = std::move(shape),
          .values = values.data()};
}

}  // namespace tutti::data
