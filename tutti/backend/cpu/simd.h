#pragma once
// Sixteen floats at a time, through GCC's vector extensions: one AVX-512 register, two of AVX2,
// four of SSE or NEON. Loads and stores take whole vectors (AllLanes) or the first n lanes
// (SomeLanes; lanes not loaded are 0, not stored stay untouched). bf16 is widened on load and
// rounded to nearest even on store, NaN stays NaN. Intrinsics appear only where the compiler does
// not find the instruction by itself.

#include <cstdint>
#include <cstring>

#include "tutti/backend/backend.h"
#include "tutti/tensor/dtype.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define TUTTI_AVX512 1
#else
#define TUTTI_AVX512 0
#endif

// How vectors wider than the machine's registers are passed differs between compilers; here
// everything is inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tutti::simd {

constexpr int kLanes = 16;
/// How many vectors of sixteen floats a loop may keep as sums, which is half of the registers:
/// AVX-512 has 32 of them, AVX2 has room for 8.
constexpr int kSums = TUTTI_AVX512 ? 16 : 4;
using Floats = float __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));

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

inline Floats splat(float value) { return Floats{} + value; }

// Masks are made with integers: GCC 12 compares vectors that are wider than a register one lane at
// a time.

/// All ones in the lanes whose highest bit is set.
inline Words sign_mask(Words v) {
  using Ints = int32_t __attribute__((vector_size(64)));
  return reinterpret_cast<Words>(reinterpret_cast<Ints>(v) >> 31);
}
/// All ones in the lanes that are > 0; not in those that are NaN.
inline Words positive_mask(Floats v) {
  const Words u = reinterpret_cast<Words>(v) - 1u;  // 0 and what has a sign: the highest bit is set
  return sign_mask((u - 0x7F800000u) & ~u);         // from infinity's number on: the bit is clear
}
/// All ones in the lanes of v below a bound.
inline Words below_mask(Words v, uint32_t bound) {
  return sign_mask((~v & bound) | ((~v | bound) & (v - bound)));  // the borrow of v - bound
}
/// v in the first n lanes, 0 in the others.
inline Floats first_lanes(Floats v, int n) {
  constexpr Words kIota{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return reinterpret_cast<Floats>(reinterpret_cast<Words>(v) &
                                  sign_mask(kIota - static_cast<uint32_t>(n)));
}

inline Floats widen(Halves bits) {
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(
      reinterpret_cast<Words>(_mm512_maskz_cvtepu16_epi32(kAll, reinterpret_cast<__m256i>(bits)))
      << 16);
#else
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
#endif
}

inline Halves narrow(Floats values) {
#if TUTTI_AVX512 && defined(__AVX512BF16__)
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(values)));
#else
  const Words u = reinterpret_cast<Words>(values);
  const Words rounded = u + 0x7FFFu + ((u >> 16) & 1u);
  const Words nan = sign_mask(0x7F800000u - (u & 0x7FFFFFFFu));
  return __builtin_convertvector(((rounded & ~nan) | ((u | 0x400000u) & nan)) >> 16, Halves);
#endif
}

inline Floats load(const float* p, AllLanes) {
  Floats v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Floats load(const bf16* p, AllLanes) {
  Halves v;
  std::memcpy(&v, p, sizeof v);
  return widen(v);
}
inline void store(float* p, Floats v, AllLanes) { std::memcpy(p, &v, sizeof v); }
inline void store(bf16* p, Floats v, AllLanes) {
  const Halves h = narrow(v);
  std::memcpy(static_cast<void*>(p), &h, sizeof h);
}

#if TUTTI_AVX512
inline __mmask16 mask_of(SomeLanes lanes) { return static_cast<__mmask16>((1u << lanes.n) - 1); }
inline Floats load(const float* p, SomeLanes lanes) {
  return reinterpret_cast<Floats>(_mm512_maskz_loadu_ps(mask_of(lanes), p));
}
inline Floats load(const bf16* p, SomeLanes lanes) {
  return widen(reinterpret_cast<Halves>(_mm256_maskz_loadu_epi16(mask_of(lanes), p)));
}
inline void store(float* p, Floats v, SomeLanes lanes) {
  _mm512_mask_storeu_ps(p, mask_of(lanes), reinterpret_cast<__m512>(v));
}
inline void store(bf16* p, Floats v, SomeLanes lanes) {
  _mm256_mask_storeu_epi16(p, mask_of(lanes), reinterpret_cast<__m256i>(narrow(v)));
}
#else
/// The first n of up to 15 elements, in moves of 8, 4, 2 and 1: no loop, which the compiler would
/// unroll at every one of the many places where this is inlined.
template <class T>
inline void copy_some(T* to, const T* from, SomeLanes lanes) {
  int at = 0;
#pragma GCC unroll 4
  for (int size = 8; size > 0; size /= 2) {
    if ((lanes.n & size) == 0) continue;
    std::memcpy(static_cast<void*>(to + at), from + at, static_cast<size_t>(size) * sizeof(T));
    at += size;
  }
}
inline Floats load(const float* p, SomeLanes lanes) {
  float v[kLanes] = {};
  copy_some(v, p, lanes);
  return load(v, AllLanes{});
}
inline Floats load(const bf16* p, SomeLanes lanes) {
  bf16 v[kLanes] = {};
  copy_some(v, p, lanes);
  return load(v, AllLanes{});
}
inline void store(float* p, Floats v, SomeLanes lanes) {
  float all[kLanes];
  store(all, v, AllLanes{});
  copy_some(p, all, lanes);
}
inline void store(bf16* p, Floats v, SomeLanes lanes) {
  bf16 all[kLanes];
  store(all, v, AllLanes{});
  copy_some(p, all, lanes);
}
#endif

/// max(v, 0); NaN stays NaN, so that a diverging network is seen.
inline Floats relu(Floats v) {
#if TUTTI_AVX512
  return reinterpret_cast<Floats>(_mm512_maskz_max_ps(
      kAll, __m512{}, reinterpret_cast<__m512>(v)));  // of 0 and NaN: the second
#else
  return reinterpret_cast<Floats>(reinterpret_cast<Words>(v) & ~positive_mask(-v));
#endif
}
/// `then` where a < b, `otherwise` elsewhere and where one is NaN.
inline Floats where_less(Floats a, Floats b, Floats then, Floats otherwise) {
#if TUTTI_AVX512
  return a < b ? then : otherwise;
#else
  const Words less = positive_mask(b - a);
  return reinterpret_cast<Floats>((reinterpret_cast<Words>(then) & less) |
                                  (reinterpret_cast<Words>(otherwise) & ~less));
#endif
}
/// v where z > 0, else 0: the gradient through a ReLU whose result is z.
inline Floats where_positive(Floats z, Floats v) {
#if TUTTI_AVX512
  return z > 0.f ? v : Floats{};
#else
  return reinterpret_cast<Floats>(reinterpret_cast<Words>(v) & positive_mask(z));
#endif
}

/// Sum of the lanes, always in the same tree.
inline float sum(Floats v) {
  float half[kLanes];
  std::memcpy(half, &v, sizeof v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) half[i] += half[i + width];
  return half[0];
}

/// a += b. The arrays are disjoint.
inline void add(float* __restrict a, const float* __restrict b, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) a[i] += b[i];
}

/// The end of a reduction whose states are float arrays like the output (Kernel::state_output): out
/// = sum of the states in the order of the threads, this part's share of it. states[0] may be the
/// output itself.
inline void add_states(const FinishArgs& args, float* out, int64_t n) {
  const int64_t begin = n * args.part / args.parts, end = n * (args.part + 1) / args.parts;
  for (size_t s = 0; s < args.states.size(); ++s) {
    const auto* const state = static_cast<const float*>(args.states[s]);
    if (s > 0)
      add(out + begin, state + begin, end - begin);
    else if (state != out)
      std::memcpy(out + begin, state + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
}

}  // namespace tutti::simd
