#pragma once
// Vectors of sixteen numbers: Floats, Words (32 bits), Halves (16 bits). With AVX-512 a register,
// through GCC's vector extensions; elsewhere a Pair of vectors of eight, which are registers with
// AVX2. Both have + - * / & | << >> += *= < > == != and
//   splat(x)                        sixteen times x
//   bits_of(floats), floats_of(words)
//   select(mask, a, b)              a in the lanes where the mask is all ones, b where it is zero
//   load_as<V>(p), store_as(p, v)   a whole vector at any address

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define TUTTI_AVX512 1
#else
#define TUTTI_AVX512 0
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

// Compilers differ in how they pass vectors wider than the machine's registers; here these are
// passed only among our own functions.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tutti::backend::simd {

constexpr int kLanes = 16;
/// The number of vectors of sixteen floats that a loop may keep as sums: half of the registers of
/// AVX-512 and of AVX2.
constexpr int kSums = TUTTI_AVX512 ? 16 : 4;

#if TUTTI_AVX512

using Floats = float __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
using Bytes = uint8_t __attribute__((vector_size(16)));

[[gnu::always_inline]] inline Words words_of(Bytes v) { return __builtin_convertvector(v, Words); }
[[gnu::always_inline]] inline Bytes bytes_of(Words v) { return __builtin_convertvector(v, Bytes); }

[[gnu::always_inline]] inline Floats splat(float value) { return Floats{} + value; }
[[gnu::always_inline]] inline Words bits_of(Floats v) { return reinterpret_cast<Words>(v); }
[[gnu::always_inline]] inline Floats floats_of(Words bits) {
  return reinterpret_cast<Floats>(bits);
}
template <class Mask, class V>
[[gnu::always_inline]] inline V select(Mask mask, V a, V b) {
  return mask ? a : b;
}

template <class V>
[[gnu::always_inline]] inline V load_as(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
[[gnu::always_inline]] inline void store_as(void* p, V v) {
  std::memcpy(p, &v, sizeof v);
}

#else

/// Sixteen numbers as two vectors. GCC 12 has vectors of 64 bytes too, but carries them through
/// memory where registers hold 32: statistics of batch norm took six times as long.
template <class T>
struct Pair {
  typedef T Half __attribute__((vector_size(kLanes / 2 * sizeof(T))));
  using Mask = Pair<uint32_t>;
  Half low, high;

  Pair() = default;
  Pair(Half l, Half h) : low(l), high(h) {}
  Pair(T x) : low{x, x, x, x, x, x, x, x}, high(low) {}  // numbers mix with vectors
  T operator[](int i) const { return i < kLanes / 2 ? low[i] : high[i - kLanes / 2]; }

  friend Pair operator+(Pair a, Pair b) { return {a.low + b.low, a.high + b.high}; }
  friend Pair operator-(Pair a, Pair b) { return {a.low - b.low, a.high - b.high}; }
  friend Pair operator*(Pair a, Pair b) { return {a.low * b.low, a.high * b.high}; }
  friend Pair operator/(Pair a, Pair b) { return {a.low / b.low, a.high / b.high}; }
  friend Pair operator&(Pair a, Pair b) { return {a.low & b.low, a.high & b.high}; }
  friend Pair operator|(Pair a, Pair b) { return {a.low | b.low, a.high | b.high}; }
  friend Pair operator-(Pair a) { return {-a.low, -a.high}; }
  friend Pair operator<<(Pair a, int bits) { return {a.low << bits, a.high << bits}; }
  friend Pair operator>>(Pair a, int bits) { return {a.low >> bits, a.high >> bits}; }
  Pair& operator+=(Pair b) { return *this = *this + b; }
  Pair& operator*=(Pair b) { return *this = *this * b; }

  friend Mask operator<(Pair a, Pair b) { return mask(a.low < b.low, a.high < b.high); }
  friend Mask operator>(Pair a, Pair b) { return mask(a.low > b.low, a.high > b.high); }
  friend Mask operator==(Pair a, Pair b) { return mask(a.low == b.low, a.high == b.high); }
  friend Mask operator!=(Pair a, Pair b) { return mask(a.low != b.low, a.high != b.high); }

 private:
  template <class Ints>
  static Mask mask(Ints low, Ints high) {
    return {reinterpret_cast<typename Mask::Half>(low),
            reinterpret_cast<typename Mask::Half>(high)};
  }
};
using Floats = Pair<float>;
using Words = Pair<uint32_t>;
using Halves = Pair<uint16_t>;
using Bytes = Pair<uint8_t>;

[[gnu::always_inline]] inline Words words_of(Bytes v) {
  return {__builtin_convertvector(v.low, Words::Half),
          __builtin_convertvector(v.high, Words::Half)};
}
[[gnu::always_inline]] inline Bytes bytes_of(Words v) {
  return {__builtin_convertvector(v.low, Bytes::Half),
          __builtin_convertvector(v.high, Bytes::Half)};
}

[[gnu::always_inline]] inline Floats splat(float value) { return value; }
[[gnu::always_inline]] inline Words bits_of(Floats v) {
  return {reinterpret_cast<Words::Half>(v.low), reinterpret_cast<Words::Half>(v.high)};
}
[[gnu::always_inline]] inline Floats floats_of(Words bits) {
  return {reinterpret_cast<Floats::Half>(bits.low), reinterpret_cast<Floats::Half>(bits.high)};
}
template <class T>
[[gnu::always_inline]] inline Pair<T> select(Words mask, Pair<T> a, Pair<T> b) {
  return {mask.low ? a.low : b.low, mask.high ? a.high : b.high};
}

// Handles halves: a copy of a whole Pair would go through memory.
template <class V>
[[gnu::always_inline]] inline V load_as(const void* p) {
  typename V::Half low, high;
  std::memcpy(&low, p, sizeof low);
  std::memcpy(&high, static_cast<const char*>(p) + sizeof low, sizeof high);
  return {low, high};
}
template <class V>
[[gnu::always_inline]] inline void store_as(void* p, V v) {
  std::memcpy(p, &v.low, sizeof v.low);
  std::memcpy(static_cast<char*>(p) + sizeof v.low, &v.high, sizeof v.high);
}

#endif

}  // namespace tutti::backend::simd
