#pragma once
// Sixteen floats at a time. Loads and stores take whole vectors (AllLanes) or the first n lanes
// (SomeLanes; lanes not loaded are 0, not stored stay untouched). bf16 is widened on load and
// rounded to nearest even on store, NaN stays NaN. Intrinsics appear only where the compiler does
// not find the instruction by itself.

#include <cstdint>
#include <cstring>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/simd/simd_vector.h"
#include "tutti/tensor/dtype.h"

namespace tutti::backend::simd {

struct AllLanes {
  static constexpr int n = kLanes;
};
struct SomeLanes {
  int n;  ///< 1 .. 15
};

#if TUTTI_AVX512
constexpr __mmask16 kAll =
    0xFFFF;  // GCC 12 warns about its own unmasked intrinsics; the instruction is the same
#endif

/// Returns v in the first n lanes, 0 in the others.
[[gnu::always_inline]] inline Floats first_lanes(Floats v, int n) {
#if TUTTI_AVX512
  constexpr Words kIota{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
  const Words kIota(Words::Half{0, 1, 2, 3, 4, 5, 6, 7}, Words::Half{8, 9, 10, 11, 12, 13, 14, 15});
#endif
  return select(kIota < Words{} + static_cast<uint32_t>(n), v, Floats{});
}

[[gnu::always_inline]] inline Floats widen(Halves bits) {
#if TUTTI_AVX512
  return floats_of(
      reinterpret_cast<Words>(_mm512_maskz_cvtepu16_epi32(kAll, reinterpret_cast<__m256i>(bits)))
      << 16);
#elif defined(__AVX2__)
  const auto wide = [](Halves::Half h) {
    return reinterpret_cast<Words::Half>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(h)));
  };
  return floats_of(Words(wide(bits.low), wide(bits.high)) << 16);
#else
  const Words words(__builtin_convertvector(bits.low, Words::Half),
                    __builtin_convertvector(bits.high, Words::Half));
  return floats_of(words << 16);
#endif
}

[[gnu::always_inline]] inline Halves narrow(Floats values) {
#if TUTTI_AVX512 && defined(__AVX512BF16__)
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(values)));
#else
  const Words u = bits_of(values);
  const Words rounded = u + 0x7FFFu + ((u >> 16) & 1u);
  const Words bits = select(values == values, rounded, u | 0x400000u) >> 16;
#if TUTTI_AVX512
  return __builtin_convertvector(bits, Halves);
#elif defined(__AVX2__)
  const __m256i packed =
      _mm256_permute4x64_epi64(_mm256_packus_epi32(reinterpret_cast<__m256i>(bits.low),
                                                   reinterpret_cast<__m256i>(bits.high)),
                               0xD8);  // packing works within 16 bytes
  return {reinterpret_cast<Halves::Half>(_mm256_castsi256_si128(packed)),
          reinterpret_cast<Halves::Half>(_mm256_extracti128_si256(packed, 1))};
#else
  return {__builtin_convertvector(bits.low, Halves::Half),
          __builtin_convertvector(bits.high, Halves::Half)};
#endif
#endif
}

[[gnu::always_inline]] inline Floats load(const float* p, AllLanes) { return load_as<Floats>(p); }
[[gnu::always_inline]] inline Floats load(const bf16* p, AllLanes) {
  return widen(load_as<Halves>(p));
}
[[gnu::always_inline]] inline void store(float* p, Floats v, AllLanes) { store_as(p, v); }
[[gnu::always_inline]] inline void store(bf16* p, Floats v, AllLanes) { store_as(p, narrow(v)); }

#if TUTTI_AVX512
inline __mmask16 mask_of(SomeLanes lanes) { return static_cast<__mmask16>((1u << lanes.n) - 1); }
[[gnu::always_inline]] inline Floats load(const float* p, SomeLanes lanes) {
  return reinterpret_cast<Floats>(_mm512_maskz_loadu_ps(mask_of(lanes), p));
}
[[gnu::always_inline]] inline Floats load(const bf16* p, SomeLanes lanes) {
  return widen(reinterpret_cast<Halves>(_mm256_maskz_loadu_epi16(mask_of(lanes), p)));
}
[[gnu::always_inline]] inline void store(float* p, Floats v, SomeLanes lanes) {
  _mm512_mask_storeu_ps(p, mask_of(lanes), reinterpret_cast<__m512>(v));
}
[[gnu::always_inline]] inline void store(bf16* p, Floats v, SomeLanes lanes) {
  _mm256_mask_storeu_epi16(p, mask_of(lanes), reinterpret_cast<__m256i>(narrow(v)));
}
#else
/// Copies the first n of up to 15 elements, in moves of 8, 4, 2 and 1: no loop, which the compiler
/// would unroll at every one of the many places where this is inlined.
template <class T>
[[gnu::always_inline]] inline void copy_some(T* to, const T* from, SomeLanes lanes) {
  int at = 0;
#pragma GCC unroll 4
  for (int size = 8; size > 0; size /= 2) {
    if ((lanes.n & size) == 0) continue;
    std::memcpy(static_cast<void*>(to + at), from + at, static_cast<size_t>(size) * sizeof(T));
    at += size;
  }
}
[[gnu::always_inline]] inline Floats load(const float* p, SomeLanes lanes) {
  float v[kLanes] = {};
  copy_some(v, p, lanes);
  return load(v, AllLanes{});
}
[[gnu::always_inline]] inline Floats load(const bf16* p, SomeLanes lanes) {
  bf16 v[kLanes] = {};
  copy_some(v, p, lanes);
  return load(v, AllLanes{});
}
[[gnu::always_inline]] inline void store(float* p, Floats v, SomeLanes lanes) {
  float all[kLanes];
  store(all, v, AllLanes{});
  copy_some(p, all, lanes);
}
[[gnu::always_inline]] inline void store(bf16* p, Floats v, SomeLanes lanes) {
  bf16 all[kLanes];
  store(all, v, AllLanes{});
  copy_some(p, all, lanes);
}
#endif

/// Loads and stores numbers below 256, a byte each.
[[gnu::always_inline]] inline Words load_bytes(const uint8_t* p, AllLanes) {
  return words_of(load_as<Bytes>(p));
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* p, Words v, AllLanes) {
  store_as(p, bytes_of(v));
}
[[gnu::always_inline]] inline Words load_bytes(const uint8_t* p, SomeLanes lanes) {
  uint8_t v[kLanes] = {};
  std::memcpy(v, p, static_cast<size_t>(lanes.n));
  return load_bytes(v, AllLanes{});
}
[[gnu::always_inline]] inline void store_bytes(uint8_t* p, Words v, SomeLanes lanes) {
  uint8_t all[kLanes];
  store_bytes(all, v, AllLanes{});
  std::memcpy(p, all, static_cast<size_t>(lanes.n));
}

/// Returns max(v, 0); NaN stays NaN, so that a diverging network is noticed.
[[gnu::always_inline]] inline Floats relu(Floats v) {
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(_mm512_maskz_max_ps(
      kAll, __m512{}, reinterpret_cast<__m512>(v)));  // with 0 and NaN: the second
#else
  return select(v < Floats{}, Floats{}, v);
#endif
}
/// Returns the greater number of each lane; where one is NaN, b's.
[[gnu::always_inline]] inline Floats greater_of(Floats a, Floats b) {
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(
      _mm512_maskz_max_ps(kAll, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
  return select(a > b, a, b);
#endif
}
/// Returns the lesser number of each lane; where one is NaN, b's.
[[gnu::always_inline]] inline Floats lesser_of(Floats a, Floats b) {
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(
      _mm512_maskz_min_ps(kAll, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
  return select(a < b, a, b);
#endif
}
/// Returns `then` where a < b, `otherwise` elsewhere and where one is NaN.
[[gnu::always_inline]] inline Floats where_less(Floats a, Floats b, Floats then, Floats otherwise) {
  return select(a < b, then, otherwise);
}
/// Returns v where z > 0, else 0: the gradient through a ReLU whose result is z.
[[gnu::always_inline]] inline Floats where_positive(Floats z, Floats v) {
  return select(z > Floats{}, v, Floats{});
}

/// Returns the sum of the lanes, always in the same tree.
inline float sum(Floats v) {
  float half[kLanes];
  store(half, v, AllLanes{});
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) half[i] += half[i + width];
  return half[0];
}

/// Computes a += b. The arrays are disjoint.
inline void add(float* __restrict a, const float* __restrict b, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) a[i] += b[i];
}

/// Ends a reduction whose states are float arrays like the output (Kernel::state_output): out =
/// sum of the states in the order of the threads, this part's share of it. states[0] may be the
/// output itself.
inline void add_states(const FinishArgs& args, float* out, int64_t n) {
  const int64_t begin = n * args.thread / args.threads, end = n * (args.thread + 1) / args.threads;
  for (size_t s = 0; s < args.states.size(); ++s) {
    const auto* const state = static_cast<const float*>(args.states[s]);
    if (s > 0)
      add(out + begin, state + begin, end - begin);
    else if (state != out)
      std::memcpy(out + begin, state + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
}

}  // namespace tutti::backend::simd
