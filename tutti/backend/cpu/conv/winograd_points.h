#pragma once
// One plane of the points of some tiles' data, which the sums of both kernels read:
// [kPlane][rows][channels], rows and points a little apart.

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "tutti/backend/cpu/conv/winograd.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"

namespace tutti::backend::winograd {

/// Panels of sixteen results that are made at a time.
constexpr int64_t kPanels = 2;

/// The terms of the sums over tensors of T: numbers, or pairs of them.
template <class T>
using TermsOf = std::conditional_t<std::is_same_v<T, float>, float, matrix::TermPair>;
template <class T>
constexpr int64_t kTermsOf = sizeof(TermsOf<T>) / sizeof(T);

/// Transforms two things, each given by its load, and stores each point of both as pairs:
/// alternately of_first and of_second.
template <class First, class T, bool kDeep, int kZ, class LoadFirst, class LoadSecond, class Store>
[[gnu::always_inline]] inline void transform_pairs(LoadFirst first, LoadSecond second,
                                                   Store store) {
  simd::Floats points[kPlane];
  transform_plane<First, T, kDeep, kZ>(first, [&](int p, simd::Floats v) { points[p] = v; });
  transform_plane<First, T, kDeep, kZ>(
      second, [&](int p, simd::Floats v) { store(p, matrix::interleaved(points[p], v)); });
}

/// E: float or bf16, a row is a tile; or TermPair, a row is two tiles of bf16, term by term.
template <class E, bool kDeep, Along kAlong = Along::gathered>
class DataPoints {
 public:
  static constexpr bool kSpread = kAlong == Along::spread;
  /// The transform of the first dimension to points; the number of pixels that a tile makes.
  using First = std::conditional_t<kSpread, ResultsToPoints, DataToPoints>;
  static constexpr int P = kPlane, R = power(kResults, kDeep) * (kSpread ? 2 : 1);
  static constexpr bool kPairs = std::is_same_v<E, matrix::TermPair>;
  static constexpr int64_t kTilesOfRow = kPairs ? 2 : 1;
  using Number = std::conditional_t<kPairs, bf16, E>;

  /// Holds points for at most `most` tiles at a time, of the samples of one call.
  DataPoints(const Sliding& sliding, int64_t channels, int64_t most)
      : tiles_(sliding, kAlong), channels_(channels), rows_((most + kTilesOfRow - 1) / kTilesOfRow),
        made_(static_cast<size_t>(rows_ * kTilesOfRow * R)), zeros_(static_cast<size_t>(channels)) {
  }

  static int64_t row(int64_t channels) { return channels + matrix::kGap; }
  static int64_t bytes_of_tile(int64_t channels) {
    return P * row(channels) * static_cast<int64_t>(sizeof(E)) / kTilesOfRow;
  }

  int64_t row() const { return row(channels_); }
  int64_t point() const { return rows_ * row() + matrix::kGap; }  ///< elements between points
  size_t bytes() const { return workspace_part(static_cast<size_t>(P * point()) * sizeof(E)); }

  /// Returns the pixels of y that the i-th tile makes, counted through all samples; -1 beyond the
  /// edge.
  const int64_t* made(int64_t i) const { return made_.data() + i * R; }

  /// Makes the points of plane `z` of tiles [first, first + count), counted through all samples.
  /// The first plane comes first: made() is found with it.
  template <int kZ>
  void make(std::integral_constant<int, kZ> z, const Number* x, int64_t first, int64_t count,
            E* to) {
    const Number* from[kTilesOfRow][kPoints * P];
    Tiles::Walk tile(tiles_, first);
    for (int64_t i = 0; i < count; i += kTilesOfRow, to += row()) {
      for (int64_t k = 0; k < kTilesOfRow; ++k)
        if (i + k < count) {
          find(z, x, tile, i + k, from[k]);
          tile.next();
        } else {
          find_none(i + k, from[k]);
        }
      for_vectors(channels_, [&](int64_t c, auto lanes) {
        const auto load = [&](int64_t k) {
          return [&, k](int p) { return simd::load(from[k][p] + c, lanes); };
        };
        if constexpr (kPairs)
          transform_pairs<First, DataToPoints, kDeep, kZ>(
              load(0), load(1),
              [&](int p, simd::Words v) { simd::store_as(to + p * point() + c, v); });
        else
          transform_plane<First, DataToPoints, kDeep, kZ>(load(0), [&](int p, simd::Floats v) {
            simd::store(to + p * point() + c, v, simd::AllLanes{});
          });
      });
    }
  }

 private:
  /// Finds the tile's pixels that plane kZ is made of; with the first plane, also the pixels that
  /// it makes.
  template <int kZ>
  void find(std::integral_constant<int, kZ>, const Number* x, const Tiles::Walk& tile, int64_t i,
            const Number** from) {
    constexpr int kRead = kDeep ? P : First::kFrom * kPoints;  // pixels of a plane
    int64_t pixels[kRead];
    for (int plane = 0; plane < (kDeep ? First::kFrom : 1); ++plane) {
      if (kDeep && !First::kUses[kZ][plane]) continue;
      tile.read(plane, pixels);
      for (int p = 0; p < kRead; ++p)
        from[plane * P + p] = pixels[p] < 0 ? zeros_.data() : x + pixels[p] * channels_;
    }
    if constexpr (kZ == 0) tile.made(made_.data() + i * R);
  }
  /// Stands for a missing tile: the other half of a row of pairs.
  void find_none(int64_t i, const Number** from) {
    std::fill_n(from, kPoints * P, zeros_.data());
    std::fill_n(made_.data() + i * R, R, int64_t{-1});
  }

  Tiles tiles_;
  int64_t channels_, rows_;
  std::vector<int64_t> made_;  ///< [tiles][R]
  std::vector<Number> zeros_;  ///< a pixel of padding
};

/// Makes K<type of the activations, three dimensions or two>.
template <template <class, bool> class K, class Problem>
std::unique_ptr<Kernel> kernel_of(const Problem& problem, DType type) {
  const bool deep = problem.sliding.kernel[0] == kTaps;
  if (type == DType::bf16 && deep) return std::make_unique<K<bf16, true>>(problem);
  if (type == DType::bf16) return std::make_unique<K<bf16, false>>(problem);
  if (deep) return std::make_unique<K<float, true>>(problem);
  return std::make_unique<K<float, false>>(problem);
}

}  // namespace tutti::backend::winograd
