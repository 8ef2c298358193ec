#include "tutti/data/arrays/climate_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/data/format/array/netcdf_fill.h"

namespace tutti::data {
namespace {

/// Returns an attribute's numbers as values of the array; empty if one does not fit its type.
std::vector<double> stored_numbers(const ArrayInfo& info, const char* name) {
  const auto found = info.attributes.find(name);
  if (found == info.attributes.end()) return {};
  std::vector<double> numbers;
  for (const double value : found->second.numbers) {
    const auto stored = stored_number(info.type, value);
    if (!stored) return {};
    numbers.push_back(*stored);
  }
  return numbers;
}

/// Returns the attribute's number, or `otherwise` without it; nothing if it has none or several.
std::optional<double> one_number(const ArrayInfo& info, const char* name, double otherwise) {
  const auto found = info.attributes.find(name);
  if (found == info.attributes.end()) return otherwise;
  const std::vector<double>& numbers = found->second.numbers;
  return numbers.size() == 1 && std::isfinite(numbers[0]) ? std::optional(numbers[0])
                                                          : std::nullopt;
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

std::optional<double> stored_number(ElementType type, double value) {
  if (type == ElementType::f32) return static_cast<double>(static_cast<float>(value));
  if (!is_integer(type)) return value;
  bool holds = value == std::floor(value);
  with_elements(type, nullptr, [&](const auto* x) {
    using T = std::remove_cvref_t<decltype(*x)>;
    if constexpr (std::is_integral_v<T>)
      holds = holds && value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
              value <= static_cast<double>(std::numeric_limits<T>::max());
  });
  return holds ? std::optional(value) : std::nullopt;
}

bool ValueCoding::is_missing(double stored) const {
  return std::isnan(stored) || stored < least || stored > most ||
         std::ranges::find(missing, stored) != missing.end();
}

ValueCoding value_coding(const ArrayInfo& info) {
  ValueCoding coding{.missing = stored_numbers(info, "_FillValue")};
  const auto scale = one_number(info, "scale_factor", 1),
             offset = one_number(info, "add_offset", 0);
  if (scale && offset) coding.scale = *scale, coding.offset = *offset;
  // The default is a signed number, which an unsigned type does not have.
  if (coding.missing.empty() && !info.dimensions.empty() && !info.unsigned_by_attribute)
    if (const std::vector<uint8_t> fill = netcdf_fill(info.type); fill.size() > 1)
      with_elements(info.type, fill.data(),
                    [&](const auto* x) { coding.missing = {number_of(*x)}; });
  for (const double value : stored_numbers(info, "missing_value")) coding.missing.push_back(value);
  const auto bound = [&](const char* name, double& to) {
    if (const auto found = stored_numbers(info, name); found.size() == 1) to = found[0];
  };
  if (const auto range = stored_numbers(info, "valid_range"); range.size() == 2) {
    coding.least = range[0];
    coding.most = range[1];
  } else {
    bound("valid_min", coding.least);
    bound("valid_max", coding.most);
  }
  return coding;
}

std::vector<std::string> passed_over(const ArrayInfo& info) {
  struct Rule {
    const char* name;
    size_t numbers;  // 0: any
  };
  constexpr Rule kRules[] = {{"_FillValue", 0},
                             {"missing_value", 0},
                             {"valid_range", 2},
                             {"valid_min", 1},
                             {"valid_max", 1}};
  std::vector<std::string> names;
  const bool scales = one_number(info, "scale_factor", 1) && one_number(info, "add_offset", 0);
  for (const char* name : {"scale_factor", "add_offset"})
    if (!scales && info.attributes.contains(name)) names.emplace_back(name);
  for (const Rule& rule : kRules) {
    const size_t found = stored_numbers(info, rule.name).size();
    if (info.attributes.contains(rule.name) &&
        (found == 0 || (rule.numbers != 0 && found != rule.numbers)))
      names.emplace_back(rule.name);
  }
  return names;
}

bool is_plain(const ValueCoding& coding) { return !coding.scaled() && !coding.masks(); }

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
  if (!coding.masks() && is_integer(type)) return -1;
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
