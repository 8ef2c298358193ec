#pragma once
// Winograd's minimal filtering F(2, 3) for convolutions with 3 taps a dimension at stride 1 (Lavin
// and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", eq. 5 to 13; three dimensions
// likewise). Two results a dimension are made of four points: the data's points times the filter's
// points, point by point, added over the channels. That is 16 multiplications where the definition
// has 36, and 64 where it has 216. In f32 the results are as exact. In bf16 the points are rounded
// once more; relative_error() gives the effect.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend::winograd {

using matrix::Extents, matrix::Sliding;

/// The number of points, results and taps in one dimension, and in a tile. `deep`: three
/// dimensions, else two.
constexpr int kPoints = 4, kResults = 2, kTaps = 3;
constexpr int power(int n, bool deep) { return n * n * (deep ? n : 1); }
/// In three dimensions the points are made, multiplied and added up plane by plane: all of them
/// together would leave the cache. Two dimensions have one plane.
constexpr int kPlane = power(kPoints, false);
constexpr int planes(bool deep) { return deep ? kPoints : 1; }

/// How a gradient of data is made along the first dimension: as a convolution of dy, or `spread`:
/// as the forward pass transposed, two rows of dy over four of dx, which overlap with the next
/// tile's rows. A slab's window has more rows of dx than of dy, so it has fewer tiles that are
/// spread.
enum class Along : uint8_t { gathered, spread };

/// Returns KernelCandidate::error in bf16, for `spatial` dimensions. Each dimension multiplies the
/// variance of the error from rounding the points of data and filter by 5/3: five products make two
/// results that have three terms each. The definition rounds its weights, and both round their
/// result: 1.8 and 2.3 in two and three dimensions, as measured. Gradients of weights, whose
/// operands are rounded and whose result is not, would have 1.9 and 2.4.
double relative_error(int spatial);

/// The tiles of a sample. With a dilation of d a tile's pixels are d apart. Tiles that are spread
/// are counted sheet by sheet, see column().
class Tiles {
 public:
  class Walk;
  /// Along::spread REQUIRES: a dilation of 1 in the first dimension.
  explicit Tiles(const Sliding& sliding, Along along = Along::gathered);
  int64_t count() const;
  /// Along::spread: a sheet is column() rows of beside() tiles. Each row overlaps with the next,
  /// and with no row of another sheet.
  int64_t column() const { return tiles_along(first()); }
  int64_t beside() const { return beside_; }

 private:
  /// For each tile of one dimension, the `of_tile` terms of its pixels' distance from the sample's
  /// first pixel: the sum over three dimensions is a pixel. A negative sum means there is no pixel.
  struct Terms {
    int of_tile = 0;
    std::vector<int64_t> all{};
    const int64_t* of(int64_t tile) const { return all.data() + tile * of_tile; }
  };
  /// A loop over tiles of a dimension, `step` apart. After `count` of them the next loop makes a
  /// step.
  struct Turn {
    size_t dim = 0;
    int64_t count = 1, step = 1;
  };
  size_t first() const { return deep_ ? 0 : 1; }
  int64_t tiles_along(size_t d) const;

  bool deep_;
  int64_t beside_ = 1, x_pixels_, y_pixels_;
  std::array<Terms, 3> reads_, makes_;
  std::array<Turn, 4> order_;
};

/// Visits one tile after the other: to find each anew would cost divisions. Tiles and pixels are
/// counted through all samples. REQUIRES: `tiles` outlives it.
class Tiles::Walk {
 public:
  Walk(const Tiles& tiles, int64_t first);
  void next();
  /// Writes the pixels of x that the `plane`-th of the tile's planes reads, rows of kPoints; -1:
  /// padding.
  void read(int plane, int64_t* pixels) const {
    const Terms &rows = tiles_.reads_[1], &columns = tiles_.reads_[2];
    add_terms(sample_ * tiles_.x_pixels_ + tiles_.reads_[0].of(at_[0])[plane], rows.of(at_[1]),
              rows.of_tile, columns.of(at_[2]), kPoints, pixels);
  }
  /// Writes the pixels of y that the tile makes; -1: beyond the edge.
  void made(int64_t* pixels) const;

 private:
  [[gnu::always_inline]] static void add_terms(int64_t plane, const int64_t* row, int rows,
                                               const int64_t* column, int columns,
                                               int64_t* pixels) {
    for (int j = 0; j < rows; ++j)
      for (int k = 0; k < columns; ++k)
        *pixels++ = std::max(plane + row[j] + column[k], int64_t{-1});
  }
  const Tiles& tiles_;
  std::array<int64_t, 3> at_{};      ///< the tile's index in each dimension
  std::array<int64_t, 4> turned_{};  ///< the steps of each loop
  int64_t sample_ = 0;
};

/// How one dimension is transformed: kFrom numbers into kTo. kUses, for transforms to planes, tells
/// which numbers each point is made of; kParts, for transforms from planes, gives the factor of
/// each plane in each result.
struct DataToPoints {  // B^T
  static constexpr int kFrom = kPoints, kTo = kPoints;
  static constexpr bool kUses[kTo][kFrom] = {
      {1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}};
  [[gnu::always_inline]] static void apply(const simd::Floats* d, simd::Floats* to) {
    to[0] = d[0] - d[2];
    to[1] = d[1] + d[2];
    to[2] = d[2] - d[1];
    to[3] = d[1] - d[3];
  }
};
struct FilterToPoints {  // G
  static constexpr int kFrom = kTaps, kTo = kPoints;
  static constexpr bool kUses[kTo][kFrom] = {{1, 0, 0}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}};
  [[gnu::always_inline]] static void apply(const simd::Floats* g, simd::Floats* to) {
    const simd::Floats ends = (g[0] + g[2]) * simd::splat(0.5f), middle = g[1] * simd::splat(0.5f);
    to[0] = g[0];
    to[1] = ends + middle;
    to[2] = ends - middle;
    to[3] = g[2];
  }
};
struct PointsToResults {  // A^T
  static constexpr int kFrom = kPoints, kTo = kResults;
  static constexpr int kParts[kFrom][kTo] = {{1, 0}, {1, 1}, {1, -1}, {0, -1}};
  [[gnu::always_inline]] static void apply(const simd::Floats* m, simd::Floats* to) {
    to[0] = m[0] + m[1] + m[2];
    to[1] = m[1] - m[2] - m[3];
  }
};
/// The transposed transforms of these three, for gradients.
struct PointsToData {  // B
  static constexpr int kFrom = kPoints, kTo = kPoints;
  static constexpr int kParts[kFrom][kTo] = {
      {1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  [[gnu::always_inline]] static void apply(const simd::Floats* p, simd::Floats* to) {
    to[0] = p[0];
    to[1] = p[1] - p[2] + p[3];
    to[2] = p[1] + p[2] - p[0];
    to[3] = simd::Floats{} - p[3];
  }
};
struct ResultsToPoints {  // A
  static constexpr int kFrom = kResults, kTo = kPoints;
  static constexpr bool kUses[kTo][kFrom] = {{1, 0}, {1, 1}, {1, 1}, {0, 1}};
  [[gnu::always_inline]] static void apply(const simd::Floats* r, simd::Floats* to) {
    to[0] = r[0];
    to[1] = r[0] + r[1];
    to[2] = r[0] - r[1];
    to[3] = simd::Floats{} - r[1];
  }
};
struct PointsToFilter {  // G^T
  static constexpr int kFrom = kPoints, kTo = kTaps;
  [[gnu::always_inline]] static void apply(const simd::Floats* p, simd::Floats* to) {
    const simd::Floats sum = (p[1] + p[2]) * simd::splat(0.5f);
    to[0] = p[0] + sum;
    to[1] = (p[1] - p[2]) * simd::splat(0.5f);
    to[2] = sum + p[3];
  }
};

/// Transforms a plane: rows by `Columns`, then columns by `Rows`. load(i) returns number i in
/// row-major order, store(i, v) stores it.
template <class Rows, class Columns, class Load, class Store>
[[gnu::always_inline]] inline void transform_flat(Load load, Store store) {
  simd::Floats rows[Rows::kFrom][Columns::kTo];
#pragma GCC unroll 4
  for (int y = 0; y < Rows::kFrom; ++y) {
    simd::Floats from[Columns::kFrom];
#pragma GCC unroll 4
    for (int x = 0; x < Columns::kFrom; ++x) from[x] = load(y * Columns::kFrom + x);
    Columns::apply(from, rows[y]);
  }
#pragma GCC unroll 4
  for (int x = 0; x < Columns::kTo; ++x) {
    simd::Floats from[Rows::kFrom], to[Rows::kTo];
#pragma GCC unroll 4
    for (int y = 0; y < Rows::kFrom; ++y) from[y] = rows[y][x];
    Rows::apply(from, to);
#pragma GCC unroll 4
    for (int y = 0; y < Rows::kTo; ++y) store(y * Columns::kTo + x, to[y]);
  }
}

/// Transforms all dimensions of a tile.
template <class T, bool kDeep, class Load, class Store>
[[gnu::always_inline]] inline void transform(Load load, Store store) {
  constexpr int kFrom = T::kFrom, kTo = T::kTo;
  if constexpr (kDeep) {
    simd::Floats planes[kFrom][kTo * kTo];
#pragma GCC unroll 4
    for (int z = 0; z < kFrom; ++z)
      transform_flat<T, T>([&](int i) { return load(z * kFrom * kFrom + i); },
                           [&](int i, simd::Floats v) { planes[z][i] = v; });
#pragma GCC unroll 16
    for (int i = 0; i < kTo * kTo; ++i) {
      simd::Floats from[kFrom], to[kTo];
#pragma GCC unroll 4
      for (int z = 0; z < kFrom; ++z) from[z] = planes[z][i];
      T::apply(from, to);
#pragma GCC unroll 4
      for (int z = 0; z < kTo; ++z) store(z * kTo * kTo + i, to[z]);
    }
  } else {
    transform_flat<T, T>(load, store);
  }
}

/// Makes the points of one plane of a tile, kPlane of them, the first dimension by `First` and the
/// others by T; load as above, for all dimensions. Loads only the planes that these are made of.
template <class First, class T, bool kDeep, int kZ, class Load, class Store>
[[gnu::always_inline]] inline void transform_plane(Load load, Store store) {
  if constexpr (kDeep)
    transform_flat<T, T>(
        [&](int i) {
          simd::Floats from[First::kFrom]{}, to[First::kTo];
#pragma GCC unroll 4
          for (int z = 0; z < First::kFrom; ++z)
            if (First::kUses[kZ][z]) from[z] = load(z * T::kFrom * T::kFrom + i);
          First::apply(from, to);
          return to[kZ];
        },
        store);
  else
    transform_flat<First, T>(load, store);
}

/// Calls f(plane) for each plane, as a constant.
template <bool kDeep, class F>
void for_planes(F f) {
  [&]<int... z>(std::integer_sequence<int, z...>) { (f(std::integral_constant<int, z>{}), ...); }
  (std::make_integer_sequence<int, planes(kDeep)>{});
}

/// Calls f(first channel, lanes) for each vector of channels.
template <class F>
[[gnu::always_inline]] inline void for_vectors(int64_t channels, F f) {
  int64_t c = 0;
  for (; c + simd::kLanes <= channels; c += simd::kLanes) f(c, simd::AllLanes{});
  if (c < channels) f(c, simd::SomeLanes{static_cast<int>(channels - c)});
}

}  // namespace tutti::backend::winograd
