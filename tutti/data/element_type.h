#pragma once
// ElementType is the type of one element of a stored array. It has more types than a tensor
// (tensor/dtype.h), because files have more.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "tutti/base/error.h"
#include "tutti/tensor/dtype.h"

namespace tutti::data {

/// boolean: one byte, 0 or 1. f16: IEEE binary16. bf16: the upper half of an f32.
enum class ElementType : uint8_t {
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64
};

inline constexpr int kElementTypes = 13;

size_t size_of(ElementType type);
/// Says whether all values of the type are whole numbers.
constexpr bool is_integer(ElementType type) { return type <= ElementType::u64; }
/// Returns "bool", "i8", "u8" ... "f64".
std::string_view name_of(ElementType type);
/// Sets `type` to the type with that name; returns false if there is none.
bool element_type_of(std::string_view name, ElementType& type);

/// A binary16 number as stored in a file.
struct Half {
  uint16_t bits = 0;
  explicit operator float() const {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
    if (exponent == 31)
      return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                           : sign * std::numeric_limits<float>::infinity();
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
    return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
};

/// Converts x; halves go through f32.
template <class T>
double number_of(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<double>(static_cast<float>(x));
}

/// Rounds to the nearest binary16, ties to even; a value beyond its range becomes an infinity.
Half to_half(float value);

/// Calls body(const T*) with `values` as pointer to their own type; each T converts to float.
template <class Body>
void with_elements(ElementType type, const void* values, Body body) {
  switch (type) {
    case ElementType::boolean:
    case ElementType::u8: return body(static_cast<const uint8_t*>(values));
    case ElementType::i8: return body(static_cast<const int8_t*>(values));
    case ElementType::i16: return body(static_cast<const int16_t*>(values));
    case ElementType::u16: return body(static_cast<const uint16_t*>(values));
    case ElementType::i32: return body(static_cast<const int32_t*>(values));
    case ElementType::u32: return body(static_cast<const uint32_t*>(values));
    case ElementType::i64: return body(static_cast<const int64_t*>(values));
    case ElementType::u64: return body(static_cast<const uint64_t*>(values));
    case ElementType::f16: return body(static_cast<const Half*>(values));
    case ElementType::bf16: return body(static_cast<const bf16*>(values));
    case ElementType::f32: return body(static_cast<const float*>(values));
    case ElementType::f64: return body(static_cast<const double*>(values));
  }
  CHECK(false, "element type {}", static_cast<int>(type));
}

/// Reverses the bytes of each element: big endian to little endian, or back.
void swap_bytes(std::span<uint8_t> bytes, size_t element_bytes);

/// Converts `count` elements of `type` at `values` (native byte order, any alignment) to f32,
/// rounded to nearest; a value beyond f32's range becomes an infinity.
void to_f32(ElementType type, const void* values, int64_t count, float* out);

}  // namespace tutti::data
