#pragma once
// Has NC_FILL_SHORT and its kin: NetCDF's values for unwritten elements without a stored fill
// value.

#include <cstring>
#include <vector>

#include "tutti/data/element_type.h"

namespace tutti::data {

/// Returns a type's default fill value as one element in native byte order; empty for types that
/// NetCDF lacks.
inline std::vector<uint8_t> netcdf_fill(ElementType type) {
  const auto element = [](auto value) {
    std::vector<uint8_t> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  };
  switch (type) {
    case ElementType::i8: return element(int8_t{-127});
    case ElementType::u8: return element(uint8_t{255});
    case ElementType::i16: return element(int16_t{-32767});
    case ElementType::u16: return element(uint16_t{65535});
    case ElementType::i32: return element(int32_t{-2147483647});
    case ElementType::u32: return element(uint32_t{4294967295u});
    case ElementType::i64: return element(int64_t{-9223372036854775806});
    case ElementType::u64: return element(uint64_t{18446744073709551614u});
    case ElementType::f32: return element(9.969209968386869e36f);
    case ElementType::f64: return element(9.969209968386869e36);
    default: return {};
  }
}

}  // namespace tutti::data
