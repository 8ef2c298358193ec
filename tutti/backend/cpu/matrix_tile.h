#pragma once
// The innermost loop of matrix products: a few rows times a few vectors of columns, kept in
// registers while a sum over `depth` runs. On top of it matrix_conv.cpp builds convolutions.

#include <array>
#include <cstdint>
#include <utility>

#include "tutti/backend/cpu/simd.h"

namespace tutti::matrix {

/// Columns lie in panels of 16: element (k, column) of a panel at k * 16 + column.
constexpr int64_t kColumns = simd::kLanes;
/// Rows and panels of the largest tile: its sums, a vector of each panel and one element of A fill
/// the registers (28 of 32 with AVX-512; 12 of 16 with AVX2, where a panel takes two).
constexpr int kMostRows = TUTTI_AVX512 ? 14 : 6, kMostPanels = TUTTI_AVX512 ? 2 : 1;

/// C[i][j] = sum over k of A[i][k] B[k][j], or += with `add`.
struct Tile {
  const float* a = nullptr;  ///< element (i, k) at i * a_row + k * a_step
  int64_t a_row = 0, a_step = 0;
  const float* b = nullptr;  ///< panels `b_panel` floats apart
  int64_t b_panel = 0;
  int64_t depth = 0;
  float* const* c = nullptr;  ///< per row: the tile's first panel lies `c_first` floats from here,
  int64_t c_first = 0;        ///< and each panel
  int64_t c_panel = 0;        ///< so many from the one before
  bool add = false;
  int last_columns = kColumns;  ///< of the last panel, that are stored
};

template <int kRows, int kPanels>
[[gnu::noinline]] void multiply(const Tile& t) {
  simd::Floats sums[kRows][kPanels]{};
  const float* a = t.a;
  const float* b = t.b;
  for (int64_t k = 0; k < t.depth; ++k, a += t.a_step, b += kColumns) {
    simd::Floats v[kPanels];
#pragma GCC unroll 2
    for (int j = 0; j < kPanels; ++j) v[j] = simd::load(b + j * t.b_panel, simd::AllLanes{});
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < kPanels; ++j) sums[i][j] += v[j] * a[i * t.a_row];
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

using Multiply = void (*)(const Tile&);

/// multiply<rows, panels> for 1 to kMostRows and kMostPanels.
inline Multiply multiply_of(int64_t rows, int64_t panels) {
  static constexpr auto kAll = []<int... i>(std::integer_sequence<int, i...>) {
    return std::array<Multiply, sizeof...(i)>{
        &multiply<i / kMostPanels + 1, i % kMostPanels + 1>...};
  }
  (std::make_integer_sequence<int, kMostRows * kMostPanels>{});
  return kAll[static_cast<size_t>((rows - 1) * kMostPanels + panels - 1)];
}

}  // namespace tutti::matrix
