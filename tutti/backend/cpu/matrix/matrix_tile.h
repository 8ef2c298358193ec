#pragma once
// The innermost loop of matrix products: a few rows times a few vectors of columns, kept in
// registers while a sum over `depth` runs. matrix_conv.cpp and matrix_weights.cpp build
// convolutions on it. Elements are floats, or pairs of bf16 whose products are added in f32.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/backend/cpu/simd/simd_transpose.h"

namespace tutti::backend::matrix {

/// Columns lie in panels of 16: element (k, column) of a panel at k * 16 + column.
constexpr int64_t kColumns = simd::kLanes;
/// Rows and panels of the largest tile: its sums, a vector of each panel and one element of A fill
/// the registers (28 of 32 with AVX-512; 12 of 16 with AVX2, where a panel takes two).
constexpr int kMostRows = TUTTI_AVX512 ? 14 : 6, kMostPanels = TUTTI_AVX512 ? 2 : 1;

/// The longest sum of one pass, in elements: a panel of B of this depth is 16 KiB and stays in the
/// first-level cache.
constexpr int64_t kDepth = 256;
/// Gathered rows are this much longer than their content: rows of a power of two would share a few
/// sets of the cache.
constexpr int64_t kGap = 16;

/// Two consecutive terms of a sum, as bf16; the first is the low half.
struct TermPair {
  uint32_t bits;
};
/// Whether TUTTI_MARCH has an instruction that adds two products of bf16 in all lanes.
#if TUTTI_AVX512 && defined(__AVX512BF16__)
constexpr bool kFastPairs = true;
#else
constexpr bool kFastPairs = false;
#endif

/// Returns two rows as one of pairs, rounded to bf16: lane i holds `first`'s lane i in its low
/// half.
[[gnu::always_inline]] inline simd::Words interleaved(simd::Floats first, simd::Floats second) {
#if TUTTI_AVX512 && defined(__AVX512BF16__)
  const __m512bh both =
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first));
  const __m512i order = reinterpret_cast<__m512i>(
      simd::Words{0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
                  0x180008, 0x190009, 0x1A000A, 0x1B000B, 0x1C000C, 0x1D000D, 0x1E000E, 0x1F000F});
  return reinterpret_cast<simd::Words>(
      _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both)));
#else
  const auto rounded = [](simd::Floats v) { return simd::bits_of(simd::widen(simd::narrow(v))); };
  return rounded(second) | rounded(first) >> 16;
#endif
}
/// Returns the sixteen pairs of neighbours of `low`, then `high`, rounded to bf16.
[[gnu::always_inline]] inline simd::Row pairs_of(simd::Floats low, simd::Floats high) {
  simd::Row row;
#if TUTTI_AVX512 && defined(__AVX512BF16__)
  const __m512bh both =
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low));
  std::memcpy(&row, &both, sizeof row);
#else
  bf16 numbers[2 * kColumns];
  simd::store(numbers, low, simd::AllLanes{});
  simd::store(numbers + kColumns, high, simd::AllLanes{});
  std::memcpy(&row, numbers, sizeof row);
#endif
  return row;
}

inline simd::Floats load_columns(const float* p) { return simd::load(p, simd::AllLanes{}); }
inline simd::Words load_columns(const TermPair* p) { return simd::load_as<simd::Words>(p); }

[[gnu::always_inline]] inline void add_product(simd::Floats& sum, simd::Floats b, float a) {
  sum += b * a;
}
[[gnu::always_inline]] inline void add_product(simd::Floats& sum, simd::Words b, TermPair a) {
#if TUTTI_AVX512 && defined(__AVX512BF16__)
  sum = reinterpret_cast<simd::Floats>(
      _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(b),
                       reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a.bits)))));
#else
  const simd::Words both = simd::Words{} + a.bits;
  sum += simd::floats_of(b << 16) * simd::floats_of(both << 16);
  sum += simd::floats_of(b >> 16 << 16) * simd::floats_of(both >> 16 << 16);
#endif
}

/// Computes C[i][j] = sum over k of A[i][k] B[k][j], or += with `add`. T: float or TermPair, which
/// counts as one k.
template <class T>
struct Tile {
  const T* a = nullptr;  ///< element (i, k) at i * a_row + k * a_step
  int64_t a_row = 0, a_step = 0;
  const T* b = nullptr;  ///< panels `b_panel` elements apart
  int64_t b_panel = 0;
  int64_t depth = 0;
  float* const* c = nullptr;  ///< a pointer for each row
  int64_t c_first = 0;        ///< floats from there to the tile's first panel
  int64_t c_panel = 0;        ///< floats from panel to panel
  bool add = false;
  int last_columns = kColumns;  ///< columns of the last panel that are stored
  /// Memory that the loop prefetches, if it does that: four consecutive cache lines every eight k,
  /// `ahead_step` bytes from the four before. If it were faster the loop would wait for them.
  const void* ahead = nullptr;
  int64_t ahead_step = 0;
};
constexpr int64_t kLineBytes = 64, kAheadLines = 4, kAheadDepth = 8;

template <class T, int kRows, int kPanels, bool kAhead>
[[gnu::noinline]] void multiply(const Tile<T>& t) {
  simd::Floats sums[kRows][kPanels]{};
  const T* a = t.a;
  const T* b = t.b;
  for (int64_t k = 0; k < t.depth; ++k, a += t.a_step, b += kColumns) {
    if constexpr (kAhead)
      __builtin_prefetch(static_cast<const char*>(t.ahead) + k / kAheadDepth * t.ahead_step +
                             k % kAheadDepth / (kAheadDepth / kAheadLines) * kLineBytes,
                         0, 2);
    decltype(load_columns(b)) v[kPanels];
#pragma GCC unroll 2
    for (int j = 0; j < kPanels; ++j) v[j] = load_columns(b + j * t.b_panel);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < kPanels; ++j) add_product(sums[i][j], v[j], a[i * t.a_row]);
  }
  const auto put = [&](int i, int j, auto lanes) {
    float* const to = t.c[i] + t.c_first + j * t.c_panel;
    simd::store(to, t.add ? simd::load(to, lanes) + sums[i][j] : sums[i][j], lanes);
  };
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kPanels; ++j)
      if (j + 1 == kPanels && t.last_columns < kColumns)
        put(i, j, simd::SomeLanes{t.last_columns});
      else
        put(i, j, simd::AllLanes{});
}

template <class T>
using Multiply = void (*)(const Tile<T>&);

/// multiply<T, rows, panels, kAhead> for 1 to kMostRows and kMostPanels.
template <class T, bool kAhead = false>
Multiply<T> multiply_of(int64_t rows, int64_t panels) {
  static constexpr auto kAll = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<Multiply<T>, sizeof...(i)>{
        &multiply<T, i / kMostPanels + 1, i % kMostPanels + 1, kAhead>...};
  }
  (std::make_integer_sequence<int, kMostRows * kMostPanels>{});
  return kAll[static_cast<size_t>((rows - 1) * kMostPanels + panels - 1)];
}

inline int64_t panels_of(int64_t columns) { return (columns + kColumns - 1) / kColumns; }
inline int64_t parts_of(int64_t total, int64_t most) { return (total + most - 1) / most; }
inline std::pair<int64_t, int64_t> part_of(int64_t total, int64_t part, int64_t parts) {
  return {total * part / parts, total * (part + 1) / parts};
}

/// Memory that is read soon, at most two pieces. It is prefetched line by line while tiles are
/// computed.
class LookAhead {
 public:
  void add(const void* from, int64_t bytes) {
    if (bytes > 0) regions_[count_++] = {static_cast<const char*>(from), bytes};
  }
  /// Gives the tile, which sums over `depth` elements, its share. Returns false if nothing is left.
  template <class T>
  bool take(Tile<T>& t) {
    if (now_ == count_) return false;
    Region& r = regions_[now_];
    const int64_t bytes = std::max<int64_t>(t.depth / kAheadDepth, 1) * kAheadLines * kLineBytes;
    t.ahead = r.from;
    t.ahead_step = kAheadLines * kLineBytes;
    r.from += bytes;
    if ((r.bytes -= bytes) <= 0) ++now_;
    return true;
  }

 private:
  struct Region {
    const char* from;
    int64_t bytes;
  };
  std::array<Region, 2> regions_{};
  size_t count_ = 0, now_ = 0;
};

/// Multiplies all rows of a block by all panels; t: a, b, c and the values that tiles share.
template <class T>
void multiply_block(Tile<T> t, int64_t rows, int64_t columns, LookAhead* ahead = nullptr) {
  const int64_t panels = panels_of(columns), tiles = parts_of(rows, kMostRows);
  const T* const a = t.a;
  const T* const b = t.b;
  float* const* const c = t.c;
  for (int64_t j = 0; j < panels; j += kMostPanels) {
    const int64_t width = std::min<int64_t>(kMostPanels, panels - j);
    t.b = b + j * t.b_panel;
    t.c_first = j * t.c_panel;
    t.last_columns =
        static_cast<int>(j + width == panels ? columns - (panels - 1) * kColumns : kColumns);
    for (int64_t i = 0; i < tiles; ++i) {
      const auto [begin, end] = part_of(rows, i, tiles);
      t.a = a + begin * t.a_row;
      t.c = c + begin;
      if (ahead && ahead->take(t))
        multiply_of<T, true>(end - begin, width)(t);
      else
        multiply_of<T>(end - begin, width)(t);
    }
  }
}

}  // namespace tutti::backend::matrix
