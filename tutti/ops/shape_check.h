#pragma once
// Functions that the shape rules share: one way to refuse, and short names for the usual output
// types.

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Extents of up to three spatial dimensions: "3x3".
using Extents = std::array<int64_t, 3>;

/// Throws ConfigError with the formatted text unless `ok`. The text names the op, the value that
/// was given and the values that fit.
template <class... Args>
void require(bool ok, fmt::format_string<Args...> text, Args&&... args) {
  if (!ok) [[unlikely]]
    throw ConfigError(fmt::format(text, std::forward<Args>(args)...));
}

inline void require_inputs(std::string_view op, Types in, size_t count) {
  require(in.size() == count, "{}: {} inputs given, {} expected", op, in.size(), count);
}

constexpr bool is_float(DType type) { return type == DType::f32 || type == DType::bf16; }

/// Throws unless both are batched or both are not, and they have one shape.
inline void require_same_shape(std::string_view op, const ValueType& a, const ValueType& b) {
  require(a.desc.shape == b.desc.shape && a.batched == b.batched, "{}: the shapes {} and {} differ",
          op, a.desc.shape, b.desc.shape);
}

inline void require_batched(std::string_view op, const ValueType& type, int least_rank) {
  require(type.batched && type.desc.shape.rank() >= least_rank && is_float(type.desc.dtype),
          "{}: needs a floating-point batch with at least {} dimensions, met {}{}", op, least_rank,
          type.batched ? "" : "unbatched ", type.desc);
}

inline ValueType unbatched_f32(const Shape& shape) { return {{DType::f32, shape, {}}, false}; }
inline ValueType batched_as(const Shape& shape, DType dtype) { return {{dtype, shape, {}}, true}; }

/// Returns the floating-point operations of so many sums of so many products each.
inline double product_flop(int64_t sums, int64_t products) {
  return 2.0 * static_cast<double>(sums) * static_cast<double>(products);
}

/// Returns `shape` with another extent of dimension 0.
inline Shape with_batch(Shape shape, int64_t batch) {
  shape[0] = batch;
  return shape;
}

inline std::string extents_text(const Extents& e, int count) {
  std::string text = fmt::format("{}", e[0]);
  for (int d = 1; d < count; ++d) text += fmt::format("x{}", e[static_cast<size_t>(d)]);
  return text;
}

}  // namespace tutti::ops
