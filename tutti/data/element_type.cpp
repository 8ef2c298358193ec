#include "tutti/data/element_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "readers turn big-endian elements round and leave little-endian ones");

struct ElementRow {
  std::string_view name;
  size_t bytes;
};
constexpr ElementRow kElementRows[] = {{"bool", 1}, {"i8", 1},  {"u8", 1},  {"i16", 2}, {"u16", 2},
                                       {"i32", 4},  {"u32", 4}, {"i64", 8}, {"u64", 8}, {"f16", 2},
                                       {"bf16", 2}, {"f32", 4}, {"f64", 8}};
static_assert(std::size(kElementRows) == kElementTypes);

template <class T>
void convert_elements(const void* values, int64_t count, float* out) {
  const auto* at = static_cast<const uint8_t*>(values);
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, at + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, double>)  // beyond f32's range the cast alone is undefined
      out[i] = std::abs(value) > std::numeric_limits<float>::max() && std::isfinite(value)
                   ? std::copysign(std::numeric_limits<float>::infinity(),
                                   static_cast<float>(value > 0 ? 1 : -1))
                   : static_cast<float>(value);
    else
      out[i] = static_cast<float>(value);
  }
}

}  // namespace

size_t size_of(ElementType type) { return kElementRows[static_cast<size_t>(type)].bytes; }
std::string_view name_of(ElementType type) { return kElementRows[static_cast<size_t>(type)].name; }

bool element_type_of(std::string_view name, ElementType& type) {
  const auto row = std::ranges::find(kElementRows, name, &ElementRow::name);
  if (row == std::end(kElementRows)) return false;
  type = static_cast<ElementType>(row - std::begin(kElementRows));
  return true;
}

Half to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};   // NaN
  if (magnitude >= 0x47800000) return {static_cast<uint16_t>(sign | 0x7c00)};  // 2^16 and more
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < -25) return {sign};
  // The mantissa is in units of the result's last place; rounding it up may carry into the
  // exponent.
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const int dropped = exponent < -14 ? -1 - exponent : 13;
  const uint32_t kept = mantissa >> dropped, rest = mantissa & ((1u << dropped) - 1);
  const uint32_t half = 1u << (dropped - 1);
  uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
  if (exponent >= -14) rounded += static_cast<uint32_t>(exponent + 14) << 10;
  return {static_cast<uint16_t>(sign | rounded)};
}

void swap_bytes(std::span<uint8_t> bytes, size_t element_bytes) {
  if (element_bytes < 2) return;
  for (size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes)
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + element_bytes));
}

void to_f32(ElementType type, const void* values, int64_t count, float* out) {
  with_elements(type, values, [&]<class T>(const T*) { convert_elements<T>(values, count, out); });
}

}  // namespace tutti::data
