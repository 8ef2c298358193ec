#pragma once
// Products of matrices in register tiles: vectors are columns, so that the right factor and the
// result are read and written along their rows.

#include <cstdint>
#include <type_traits>

#include "tutti/backend/cpu/simd.h"

namespace tutti::product {

/// A matrix of rows; element (i, j) at data[i * row + j].
template <class T>
struct RowMajor {
  T* data;
  int64_t row;
  T* at(int64_t i, int64_t j) const { return data + i * row + j; }
};

/// The largest tile. Loops over it are unrolled: a sum with a variable index would be one in
/// memory.
constexpr int kTileVectors = simd::kSums > 4 ? 2 : 1, kTileRows = simd::kSums / kTileVectors;

/// The left factor of a product; element (i, k) at data[i * row + k * column].
struct Left {
  const float* data;
  int64_t row, column;
};

/// kRows rows of c over kVectors vectors of columns: c(i, j) = sum_k a(i, k) * b(k, j).
template <int kRows, int kVectors, class Lanes, class B, class Store>
void tile_of(Left a, RowMajor<B> b, int64_t n, Lanes lanes, Store store) {
  constexpr int64_t ahead = 16;
  simd::Floats sums[kRows][kVectors]{};
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      // RowMajor lie pages apart, where hardware does not look ahead.
      __builtin_prefetch(b.at(k + ahead, v * simd::kLanes));
    simd::Floats right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = simd::load(b.at(k, v * simd::kLanes), lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const simd::Floats left = simd::splat(a.data[i * a.row + k * a.column]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(i, v * simd::kLanes, sums[i][v], lanes);
}

/// All of c [rows, columns]: store(i, j, sixteen sums, lanes) for every tile of c = a * b. A small
/// b stays in cache, and c is passed along its rows, so that memory sees a few long streams.
/// Otherwise columns are the outer loop: their stripe of b stays in cache while the rows pass.
template <class B, class Store>
void outer(int64_t rows, int64_t columns, int64_t n, Left a, RowMajor<B> b, Store store) {
  const auto tile = [&]<int kRows, int kVectors>(std::integral_constant<int, kRows>, int64_t i,
                                                 std::integral_constant<int, kVectors>, int64_t j,
                                                 auto lanes) {
    tile_of<kRows, kVectors>(
        Left{a.data + i * a.row, a.row, a.column}, RowMajor<B>{b.data + j, b.row}, n, lanes,
        [&](int r, int64_t c, simd::Floats sum, auto which) { store(i + r, j + c, sum, which); });
  };
  const auto over_rows = [&](auto&& part) {
    int64_t i = 0;
    for (; i + kTileRows <= rows; i += kTileRows) part(std::integral_constant<int, kTileRows>{}, i);
    constexpr int kHalf = kTileRows / 2;
    if (i + kHalf <= rows) part(std::integral_constant<int, kHalf>{}, i), i += kHalf;
    for (; i < rows; ++i) part(std::integral_constant<int, 1>{}, i);
  };
  const auto over_columns = [&](auto&& part) {
    int64_t j = 0;
    for (; j + kTileVectors * simd::kLanes <= columns; j += kTileVectors * simd::kLanes)
      part(std::integral_constant<int, kTileVectors>{}, j, simd::AllLanes{});
    constexpr std::integral_constant<int, 1> one;
    for (; j + simd::kLanes <= columns; j += simd::kLanes) part(one, j, simd::AllLanes{});
    if (j < columns) part(one, j, simd::SomeLanes{static_cast<int>(columns - j)});
  };
  constexpr size_t kCache = 256 << 10;  // well inside the second level
  if (static_cast<size_t>(n * columns) * sizeof(B) <= kCache)
    over_rows([&](auto kRows, int64_t i) {
      over_columns(
          [&](auto kVectors, int64_t j, auto lanes) { tile(kRows, i, kVectors, j, lanes); });
    });
  else
    over_columns([&](auto kVectors, int64_t j, auto lanes) {
      over_rows([&](auto kRows, int64_t i) { tile(kRows, i, kVectors, j, lanes); });
    });
}

}  // namespace tutti::product
