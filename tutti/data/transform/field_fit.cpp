#include "tutti/data/transform/field_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

std::string extents_text(const Shape& shape) {
  return shape.rank() == 0 ? "one number" : shape.to_string();
}

std::string remedy(const Field& stored, const Shape& placed, const Shape& taken, DType type) {
  if (type == DType::i32)
    return taken.rank() == 0
               ? "one class number a sample: model.task = \"segment\" learns maps of classes and "
                 "\"regress\" numbers; or correct 'as' in data.fields, or data.transforms"
               : "a class number at each position: give it the extents of the network's maps, with "
                 "'as' in data.fields or with data.transforms; model.task = \"classify\" learns "
                 "one class a sample and \"regress\" numbers";
  if (!stored.class_names.empty())
    return "numbers: the field holds class numbers, which model.task = \"classify\" learns, or "
           "\"segment\" where there is one for each position";
  if (placed.elements() == taken.elements()) {
    std::string as;
    for (int d = 0; d < taken.rank(); ++d) as += fmt::format(" {}", taken[d]);
    return fmt::format("numbers: 'as{}' in its line of data.fields gives it these extents", as);
  }
  return "numbers: correct the network's outputs, 'as' in data.fields, or data.transforms; "
         "model.task = \"classify\" or \"segment\" learns class numbers";
}

}  // namespace

FieldAxes fitted_axes(const Field& stored, const Shape& placed, const TensorDesc& batch) {
  FieldAxes axes{};
  const int to = batch.shape.rank();
  int a = 0, d = 1;
  while (a < placed.rank() || d < to) {
    if (a < placed.rank() && d < to && placed[a] == batch.shape[d])
      axes[static_cast<size_t>(a++)] = d++;
    else if (a < placed.rank() && placed[a] == 1)
      axes[static_cast<size_t>(a++)] = 0;
    else if (d < to && batch.shape[d] == 1)
      ++d;
    else
      break;
  }
  if (a == placed.rank() && d == to) return axes;
  const Shape taken(std::span(batch.shape.begin() + 1, batch.shape.end()));
  throw ConfigError(fmt::format(
      "the field '{}' leaves its transforms as {}, the network takes {}, {}", stored.name,
      extents_text(placed), extents_text(taken), remedy(stored, placed, taken, batch.dtype)));
}

void check_moved_same(const Field& field, const Placement& placement, const Field& other,
                      const Placement& of_other) {
  const Shape a = placed_shape(field, placement), b = placed_shape(other, of_other);
  const int ra = a.rank(), rb = b.rank();
  if (ra < 2 || rb < 2 || a[ra - 1] != b[rb - 1] || a[ra - 2] != b[rb - 2]) return;
  const auto padding = [](const Placement& p) { return p.crops ? p.pad : 0; };
  const char* step = placement.flip != of_other.flip               ? "flip"
                     : placement.symmetries != of_other.symmetries ? "symmetries"
                     : padding(placement) != padding(of_other)     ? "crop pad"
                                                                   : nullptr;
  if (step == nullptr) return;
  throw ConfigError(
      fmt::format("data.transforms: '{}' stands in the line of '{}' otherwise than in that of "
                  "'{}', which has the same rows and columns ({} and {}): what lies at one place "
                  "would come apart; give both lines the same steps",
                  step, field.name, other.name, a.to_string(), b.to_string()));
}

void check_class_count(const Field& field, int64_t classes) {
  if (classes == 0) return;
  const int64_t known = std::ssize(field.class_names);
  if (known > classes)
    throw ConfigError(
        fmt::format("the field '{}' has {} classes, the network has outputs for {}: give its last "
                    "layer {} outputs, or correct 'classes N' in data.fields",
                    field.name, known, classes, known));
  if (known == 0 && classes == 1)
    throw ConfigError(fmt::format(
        "the network has one output for the class numbers of the field '{}': 'classes N' in its "
        "line of data.fields says how many there are; model.task = \"regress\" learns numbers",
        field.name));
}

void check_class_numbers(const Field& field, int64_t classes, const void* stored, int64_t index) {
  with_elements(field.element, stored, [&](const auto* x) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*x)>>) {
      const auto [least, greatest] = std::minmax_element(x, x + field.elements());
      const bool below = std::cmp_less(*least, 0);
      if (!below && std::cmp_less(*greatest, classes)) return;
      throw ConfigError(fmt::format(
          "sample {} of the data set: the field '{}' holds the label {}, the network has outputs "
          "for classes 0 to {}: 'classes N' in the field's line of data.fields says how many there "
          "are; or correct the labels",
          index, field.name, below ? *least : *greatest, classes - 1));
    }
  });
}

}  // namespace tutti::data
