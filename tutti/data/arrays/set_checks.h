#pragma once
// Helps tests to make data sets of files, and to read their samples.

#include <gtest/gtest.h>

#include "tutti/data/arrays/array_set.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/array/hdf5_arrays.h"

namespace tutti::data {

using Paths = std::vector<std::filesystem::path>;

inline std::unique_ptr<Dataset> set_of(const Paths& files, const std::vector<std::string>& lines) {
  return open_array_set(
      {.files = files, .fields = parse_field_lines(lines), .key = "data.train_files"});
}

template <class T>
std::vector<T> values_of(const Dataset& set, int64_t index, const std::string& field) {
  Sample sample(set.fields());
  set.read(index, sample);
  const auto* x = static_cast<const T*>(sample.at(field_index(set, field)));
  return {x, x + field_named(set, field).elements()};
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
ArrayRef array_ref(std::string name, ElementType type, std::vector<int64_t> shape,
                   const std::vector<T>& values) {
  return {
      .name = std::move(name), .type = type, .shape = std::move(shape), .values = values.data()};
}

}  // namespace tutti::data
