#pragma once
// What collectives move and add: element types, and the arithmetic on them.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::comm {

enum class Element : uint8_t { f32, f64, bf16, f16, i8, i32, byte, i64, u8 };
inline constexpr int kElements = 9;
enum class ReduceOp : uint8_t { sum, min, max, mean, product };
inline constexpr int kReduceOps = 5;

size_t size_of(Element element);
std::string_view name_of(Element element);
std::string_view name_of(ReduceOp op);
/// By name; throws ConfigError that lists the names.
Element element_named(std::string_view name);
ReduceOp reduce_op_named(std::string_view name);

/// Bytes have no arithmetic: they can be moved, not reduced.
inline bool has_arithmetic(Element element) { return element != Element::byte; }
/// The type in which sums and products are taken: f32 for 16-bit floats, otherwise the type itself.
/// Integers wrap around. Minima and maxima are exact in any type and need no other.
Element accumulator_of(Element element, ReduceOp op);

/// A run of elements in memory, of one of two types: the collective's own or its accumulator.
struct Run {
  std::byte* data = nullptr;
  Element type = Element::f32;
};

/// to[i] = a[i] for i < count, converted. No-op when `to` is `a`.
void convert(Run to, Run a, size_t count);
/// to[i] = a[i] op b[i]; `mean` adds. The three types are equal, or each is f32 or one and the same
/// 16-bit float: then computed in f32. `to` may be a or b.
/// `whole`: elements of the sum that this is a piece of, if it is one.
void combine(ReduceOp op, Run to, Run a, Run b, size_t count, size_t whole = 0);
/// to[i] = a[i] / divisor; integers are divided towards zero.
void divide(Run to, Run a, double divisor, size_t count);

}  // namespace tutti::comm
