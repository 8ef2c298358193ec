#include "tutti/plan/variables.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "tutti/base/error.h"

namespace tutti::plan {
namespace {

/// Which places of storage to visit: elements alone, or padding, too.
enum class Places : uint8_t { elements, all };

/// Calls fn(plain position, storage position) for each place, with plain position -1 for padding.
/// For large tensors all threads share the rows of the last dimension whose extent is not 1.
template <class Fn>
void for_each_place(const TensorDesc& desc, Places places, Fn fn) {
  const Shape& shape = desc.shape;
  if (desc.elements() == 0) return;
  if (shape.rank() == 0) return fn(0, 0);
  std::vector<std::vector<int64_t>> terms;
  for (int d = 0; d < shape.rank(); ++d)
    terms.push_back(desc.layout.terms(shape, d, places == Places::all));
  int last = shape.rank() - 1;
  while (last > 0 && terms[static_cast<size_t>(last)].size() == 1) --last;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= std::ssize(terms[static_cast<size_t>(d)]);
  const std::vector<int64_t>& row = terms[static_cast<size_t>(last)];
  const int64_t columns = std::ssize(row);
#pragma omp parallel for if (rows * columns > (1 << 18))
  for (int64_t r = 0; r < rows; ++r) {
    int64_t to = 0, from = 0, there = shape[last], rest = r, stride = shape[last];
    for (int d = last - 1; d >= 0; --d) {
      const std::vector<int64_t>& own = terms[static_cast<size_t>(d)];
      const int64_t at = rest % std::ssize(own);
      to += own[static_cast<size_t>(at)];
      from += at * stride;
      if (at >= shape[d]) there = 0;
      rest /= std::ssize(own);
      stride *= shape[d];
    }
    for (int64_t c = 0; c < there; ++c) fn(from + c, to + row[static_cast<size_t>(c)]);
    for (int64_t c = there; c < columns; ++c) fn(-1, to + row[static_cast<size_t>(c)]);
  }
}

const Variable* find_in(const std::vector<Variable>& list, std::string_view name) {
  const auto at = std::ranges::find(list, name, &Variable::name);
  return at == list.end() ? nullptr : &*at;
}

}  // namespace

void Variables::set_slices(const graph::TensorSlices& slices) {
  for (Variable& variable : parameters)
    if (const auto at = slices.find(variable.name); at != slices.end()) variable.slice = at->second;
}

bool Variables::has_slices() const {
  return std::ranges::any_of(parameters, [](const Variable& v) { return v.slice.has_value(); });
}

const Variable* Variables::find_parameter(std::string_view name) const {
  return find_in(parameters, name);
}
const Variable* Variables::find_statistic(std::string_view name) const {
  return find_in(statistics, name);
}
const TableVariable* Variables::find_table(std::string_view name) const {
  const auto at =
      std::ranges::find_if(tables, [&](const auto& table) { return table.variable.name == name; });
  return at == tables.end() ? nullptr : &*at;
}

void import_plain(const Variable& variable, const float* plain, std::byte* arena) {
  auto* storage = reinterpret_cast<float*>(arena + variable.offset);
  for_each_place(variable.desc, Places::all,
                 [&](int64_t from, int64_t to) { storage[to] = from < 0 ? 0.0f : plain[from]; });
}

void export_alone() { omp_set_num_threads(1); }

void export_storage(const TensorDesc& desc, std::span<const std::byte> storage, float* plain) {
  CHECK(desc.dtype == DType::f32 && storage.size() == desc.bytes(), "{}", desc.to_string());
  const auto* const values = reinterpret_cast<const float*>(storage.data());
  for_each_place(desc, Places::elements,
                 [&](int64_t to, int64_t from) { plain[to] = values[from]; });
}

void export_plain(const Variable& variable, const std::byte* arena, float* plain) {
  export_storage(variable.desc, {arena + variable.offset, variable.desc.bytes()}, plain);
}

}  // namespace tutti::plan
