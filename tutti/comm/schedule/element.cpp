#include "tutti/comm/schedule/element.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "tutti/base/error.h"
#include "tutti/comm/compress/codec/fp16.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {
namespace {

constexpr std::array<std::string_view, kElements> kElementNames{"f32", "f64",  "bf16", "f16", "i8",
                                                                "i32", "byte", "i64",  "u8"};
constexpr std::array<std::string_view, kReduceOps> kOpNames{"sum", "min", "max", "mean", "product"};
constexpr size_t kWideBlock = 1024;  // floats: the widened values stay in the L1 cache

template <class T>
T* as(Run run) {
  return reinterpret_cast<T*>(run.data);
}

template <class T, size_t N>
T named(const std::array<std::string_view, N>& names, std::string_view name, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw ConfigError(
        fmt::format("no {} is called '{}'; there are {}", what, name, fmt::join(names, ", ")));
  return static_cast<T>(found - names.begin());
}

// The minimum and maximum of IEEE 754-2019: a NaN propagates, and -0 is less than +0. The one NaN
// that they make and the bits of both zeros do not depend on the order of the operands, so that all
// ranks get the same bits from any algorithm. In a program that takes denormals for zero
// (base/numeric/denormals.h) any two of those are equal, and the result is one too.
template <class T>
T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
template <std::floating_point T>
T smaller(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const T zero = std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
  const T least = a == b ? zero : b < a ? b : a;
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : least;
}
template <std::floating_point T>
T larger(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const T zero = std::bit_cast<T>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
  const T most = a == b ? zero : a < b ? b : a;
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : most;
}

template <class T>
void combine_plain(ReduceOp op, T* to, const T* a, const T* b, size_t n) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<T>(a[i] + b[i]);
      return;
    case ReduceOp::min:
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i) to[i] = smaller(a[i], b[i]);
      return;
    case ReduceOp::max:
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i) to[i] = larger(a[i], b[i]);
      return;
    case ReduceOp::product:
#pragma GCC ivdep
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<T>(a[i] * b[i]);
      return;
  }
}

// Writes a large sum around the cache, which would not hold it until it is read: a store into the
// cache would first read the line from memory, a quarter of all traffic. Not for a sum in
// place, whose lines are there already. The fence: the signal to other ranks that the sum is there
// must not overtake it.
constexpr size_t kAroundCache = size_t{8} << 20;  // bytes

void sum_around_cache(float* to, const float* a, const float* b, size_t n) {
#if defined(__AVX512F__)
  size_t i = 0;
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % 64 != 0; ++i) to[i] = a[i] + b[i];
  for (; i + 16 <= n; i += 16)
    _mm512_stream_ps(to + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
  for (; i < n; ++i) to[i] = a[i] + b[i];
  _mm_sfence();
#else
  combine_plain(ReduceOp::sum, to, a, b, n);
#endif
}

void combine_floats(ReduceOp op, float* to, const float* a, const float* b, size_t n,
                    size_t whole) {
  const bool sums = op == ReduceOp::sum || op == ReduceOp::mean;
  if (sums && std::max(n, whole) * sizeof(float) >= kAroundCache && to != a && to != b)
    return sum_around_cache(to, a, b, n);
  combine_plain(op, to, a, b, n);
}

// Two's complement: signed sums and products wrap around instead of being undefined.
template <class T>
void combine_wrapping(ReduceOp op, Run to, Run a, Run b, size_t n) {
  if (op == ReduceOp::min || op == ReduceOp::max)
    return combine_plain(op, as<T>(to), as<T>(a), as<T>(b), n);
  using Unsigned = std::make_unsigned_t<T>;
  combine_plain(op, as<Unsigned>(to), as<Unsigned>(a), as<Unsigned>(b), n);
}

// Divides by the number of ranks, which every type but the 8-bit ones can hold.
template <class T>
void divide_whole(Run to, Run a, double divisor, size_t n) {
  const auto by = static_cast<int64_t>(divisor);
  for (size_t i = 0; i < n; ++i) as<T>(to)[i] = static_cast<T>(as<T>(a)[i] / by);
}

template <class Half>
void widen_as(const std::byte* from, float* to, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(reinterpret_cast<const Half*>(from)[i]);
}

template <class Half>
void narrow_as(const float* from, std::byte* to, size_t n) {
  for (size_t i = 0; i < n; ++i) reinterpret_cast<Half*>(to)[i] = Half(from[i]);
}

void widen(const std::byte* from, Element type, float* to, size_t n) {
  type == Element::bf16 ? widen_as<bf16>(from, to, n) : widen_as<fp16>(from, to, n);
}

void narrow(const float* from, Element type, std::byte* to, size_t n) {
  type == Element::bf16 ? narrow_as<bf16>(from, to, n) : narrow_as<fp16>(from, to, n);
}

bool is_half(Element type) { return type == Element::bf16 || type == Element::f16; }

// Calls body with f32 views of the operands, block by block, and narrows the result.
template <class Body>
void in_blocks(Run to, Run a, Run b, size_t count, Body body) {
  alignas(64) float wide_a[kWideBlock], wide_b[kWideBlock], wide_to[kWideBlock];
  for (size_t i = 0; i < count; i += kWideBlock) {
    const size_t n = std::min(kWideBlock, count - i);
    const auto view = [&](Run run, float* room) {
      if (!is_half(run.type)) return as<float>(run) + i;
      widen(run.data + 2 * i, run.type, room, n);
      return room;
    };
    float* const out = is_half(to.type) ? wide_to : as<float>(to) + i;
    body(out, view(a, wide_a), b.data == nullptr ? nullptr : view(b, wide_b), n);
    if (is_half(to.type)) narrow(out, to.type, to.data + 2 * i, n);
  }
}

}  // namespace

size_t size_of(Element element) {
  static constexpr std::array<size_t, kElements> kSizes{4, 8, 2, 2, 1, 4, 1, 8, 1};
  return kSizes[static_cast<size_t>(element)];
}
std::string_view name_of(Element element) { return kElementNames[static_cast<size_t>(element)]; }
std::string_view name_of(ReduceOp op) { return kOpNames[static_cast<size_t>(op)]; }
Element element_named(std::string_view name) {
  return named<Element>(kElementNames, name, "element type");
}
ReduceOp reduce_op_named(std::string_view name) {
  return named<ReduceOp>(kOpNames, name, "reduction");
}

Element accumulator_of(Element element, ReduceOp op) {
  const bool exact = op == ReduceOp::min || op == ReduceOp::max;
  return is_half(element) && !exact ? Element::f32 : element;
}

void convert(Run to, Run a, size_t count) {
  if (to.type == a.type) {
    if (to.data != a.data) std::memcpy(to.data, a.data, count * size_of(to.type));
    return;
  }
  in_blocks(to, a, {}, count, [](float* out, const float* in, const float*, size_t n) {
    if (out != in) std::memcpy(out, in, n * sizeof(float));
  });
}

void combine(ReduceOp op, Run to, Run a, Run b, size_t count, size_t whole) {
  switch (to.type) {
    case Element::f64:
      return combine_plain(op, as<double>(to), as<double>(a), as<double>(b), count);
    case Element::i8: return combine_wrapping<int8_t>(op, to, a, b, count);
    case Element::u8: return combine_wrapping<uint8_t>(op, to, a, b, count);
    case Element::i32: return combine_wrapping<int32_t>(op, to, a, b, count);
    case Element::i64: return combine_wrapping<int64_t>(op, to, a, b, count);
    case Element::byte: throw InternalError("bytes cannot be reduced");
    default:
      if (!is_half(to.type) && !is_half(a.type) && !is_half(b.type))
        return combine_floats(op, as<float>(to), as<float>(a), as<float>(b), count, whole);
      in_blocks(to, a, b, count, [op](float* out, const float* x, const float* y, size_t n) {
        combine_plain(op, out, x, y, n);
      });
  }
}

void divide(Run to, Run a, double divisor, size_t count) {
  switch (to.type) {
    case Element::f64:
      for (size_t i = 0; i < count; ++i) as<double>(to)[i] = as<double>(a)[i] / divisor;
      return;
    case Element::i8: return divide_whole<int8_t>(to, a, divisor, count);
    case Element::u8: return divide_whole<uint8_t>(to, a, divisor, count);
    case Element::i32: return divide_whole<int32_t>(to, a, divisor, count);
    case Element::i64: return divide_whole<int64_t>(to, a, divisor, count);
    case Element::byte: throw InternalError("bytes cannot be divided");
    default: {
      const auto by = static_cast<float>(divisor);
      in_blocks(to, a, {}, count, [by](float* out, const float* in, const float*, size_t n) {
        for (size_t i = 0; i < n; ++i) out[i] = in[i] / by;
      });
    }
  }
}

}  // namespace tutti::comm
