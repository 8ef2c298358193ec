#pragma once
// Element types of collectives, and the arithmetic on them.

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
/// Return the type or operation of that name; throw a ConfigError that lists the names.
Element element_named(std::string_view name);
ReduceOp reduce_op_named(std::string_view name);

/// Returns whether the elements are whole numbers, or bytes.
inline bool is_whole(Element element) {
  return element == Element::i8 || element == Element::u8 || element == Element::i32 ||
         element == Element::i64 || element == Element::byte;
}
/// Returns false for bytes: they can be moved, not reduced.
inline bool has_arithmetic(Element element) { return element != Element::byte; }
/// Returns the type in which sums and products are taken: f32 for 16-bit floats, otherwise the type
/// itself. Integers wrap around. Minima and maxima are exact in any type and need no other.
Element accumulator_of(Element element, ReduceOp op);

/// A run of elements in memory, of the collective's own type or of its accumulator's.
struct Run {
  std::byte* data = nullptr;
  Element type = Element::f32;
};

/// Sets to[i] = a[i] for i < count, converted. Does nothing when `to` is `a`.
void convert(Run to, Run a, size_t count);
/// Sets to[i] = a[i] op b[i]; `mean` adds. The three types are equal, or each is f32 or one and the
/// same 16-bit float: then the result is computed in f32. `to` may be a or b. `whole`: elements of
/// the sum that this is a piece of, if it is one.
void combine(ReduceOp op, Run to, Run a, Run b, size_t count, size_t whole = 0);
/// Sets to[i] = a[i] / divisor; integers are divided towards zero.
void divide(Run to, Run a, double divisor, size_t count);

}  // namespace tutti::comm
