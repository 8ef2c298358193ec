#pragma once
// Converts the interface's types to those of comm/, and checks a program's arguments.

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/comm/schedule/element.h"
#include "tutti/mlsl/layout/distribution.h"
#include "tutti/mlsl/mlsl.hpp"

namespace tutti::mlsl {

/// The public classes. Classes of this namespace with the same names derive from them, and
/// implement them.
namespace api = ::MLSL;

/// Throws ConfigError, to be printed to the program's author, unless `condition`.
template <class... Args>
void demand(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw ConfigError(fmt::format(text, std::forward<Args>(args)...));
}

inline comm::Element element_of(api::DataType type) {
  switch (type) {
    case api::DT_FLOAT: return comm::Element::f32;
    case api::DT_DOUBLE: return comm::Element::f64;
    case api::DT_BYTE: return comm::Element::byte;
  }
  throw ConfigError(fmt::format("{} is no data type", static_cast<int>(type)));
}

inline comm::ReduceOp reduce_op_of(api::ReductionType type) {
  switch (type) {
    case api::RT_SUM: return comm::ReduceOp::sum;
    case api::RT_MIN: return comm::ReduceOp::min;
    case api::RT_MAX: return comm::ReduceOp::max;
  }
  throw ConfigError(fmt::format("{} is no reduction type", static_cast<int>(type)));
}

inline layout::GroupKind group_kind_of(api::GroupType type) {
  switch (type) {
    case api::GT_DATA: return layout::GroupKind::data;
    case api::GT_MODEL: return layout::GroupKind::model;
    case api::GT_GLOBAL: return layout::GroupKind::global;
  }
  throw ConfigError(fmt::format("{} is no group type", static_cast<int>(type)));
}

}  // namespace tutti::mlsl
