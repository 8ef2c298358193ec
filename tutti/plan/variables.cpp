#include "tutti/plan/variables.h"

#include <algorithm>
#include <cstring>

namespace tutti {
namespace {

/// Calls fn(plain position, storage position) for every element.
template <class Fn>
void for_each_element(const TensorDesc& desc, Fn fn) {
  const int rank = desc.shape.rank();
  if (rank == 0) return fn(0, 0);
  std::vector<std::vector<int64_t>> terms;
  for (int d = 0; d < rank; ++d) terms.push_back(desc.layout.terms(desc.shape, d));
  const std::vector<int64_t>& row = terms.back();
  std::array<int64_t, Shape::kMaxRank> index{};
  for (int64_t i = 0, count = desc.elements(); i < count;) {
    int64_t start = 0;
    for (size_t d = 0; d + 1 < terms.size(); ++d) start += terms[d][static_cast<size_t>(index[d])];
    for (const int64_t term : row) fn(i++, start + term);
    for (int d = rank - 2; d >= 0 && ++index[static_cast<size_t>(d)] == desc.shape[d]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
}

const Variable* find_in(const std::vector<Variable>& list, std::string_view name) {
  const auto at = std::ranges::find(list, name, &Variable::name);
  return at == list.end() ? nullptr : &*at;
}

}  // namespace

void Variables::set_slices(const TensorSlices& slices) {
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
  std::memset(storage, 0, variable.desc.bytes());
  for_each_element(variable.desc, [&](int64_t from, int64_t to) { storage[to] = plain[from]; });
}

void export_plain(const Variable& variable, const std::byte* arena, float* plain) {
  const auto* storage = reinterpret_cast<const float*>(arena + variable.offset);
  for_each_element(variable.desc, [&](int64_t to, int64_t from) { plain[to] = storage[from]; });
}

}  // namespace tutti
