#pragma once
// ElementType: what one element of a stored array is. More types than a tensor has
// (tensor/dtype.h), because files have more.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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
/// "bool", "i8", "u8" ... "f64".
std::string_view name_of(ElementType type);
/// The type of that name; false if there is none.
bool element_type_of(std::string_view name, ElementType& type);

/// Turns the bytes of each element of `bytes` round: big endian to little, or back.
void swap_bytes(std::span<uint8_t> bytes, size_t element_bytes);

/// `count` elements of `type` at `values` (native byte order, any alignment) as f32, rounded to
/// nearest; what f32 cannot hold becomes an infinity.
void to_f32(ElementType type, const void* values, int64_t count, float* out);

}  // namespace tutti::data
