#pragma once
// The points of some tiles' data, which the sums of both kernels read: [points][tiles][channels],
// rows and points a little apart.

#include <vector>

#include "tutti/backend/cpu/matrix_tile.h"
#include "tutti/backend/cpu/winograd.h"

namespace tutti::winograd {

/// Panels of sixteen results that are made at a time.
constexpr int64_t kPanels = 2;

template <bool kDeep>
class DataPoints {
 public:
  static constexpr int P = power(kPoints, kDeep), R = power(kResults, kDeep);

  /// Of at most `most` tiles at a time, of the samples of one call.
  DataPoints(const Sliding& sliding, int64_t channels, int64_t most)
      : tiles_(sliding), x_pixels_(matrix::volume(sliding.x)), y_pixels_(matrix::volume(sliding.y)),
        channels_(channels), most_(most), made_(static_cast<size_t>(most * R)),
        zeros_(static_cast<size_t>(channels)) {}

  static int64_t row(int64_t channels) { return channels + matrix::kGap; }
  static int64_t bytes_of_tile(int64_t channels) {
    return P * row(channels) * static_cast<int64_t>(sizeof(float));
  }

  int64_t row() const { return row(channels_); }
  int64_t point() const { return most_ * row() + matrix::kGap; }  ///< floats from one to the next
  size_t bytes() const { return workspace_part(static_cast<size_t>(P * point()) * sizeof(float)); }

  /// Pixels of y that the i-th tile makes, counted through all samples; -1 beyond the edge.
  const int64_t* made(int64_t i) const { return made_.data() + i * R; }

  /// Those of tiles [first, first + count), counted through all samples.
  void make(const float* x, int64_t first, int64_t count, float* to) {
    int64_t pixels[P];
    const float* from[P];
    for (int64_t i = 0; i < count; ++i, to += row()) {
      const int64_t sample = (first + i) / tiles_.count(), tile = (first + i) % tiles_.count();
      tiles_.read(tile, pixels);
      for (int p = 0; p < P; ++p)
        from[p] = pixels[p] < 0 ? zeros_.data() : x + (sample * x_pixels_ + pixels[p]) * channels_;
      for_vectors(channels_, [&](int64_t c, auto lanes) {
        transform<DataToPoints, kDeep>(
            [&](int p) { return simd::load(from[p] + c, lanes); },
            [&](int p, simd::Floats v) { simd::store(to + p * point() + c, v, simd::AllLanes{}); });
      });
      int64_t* const made = made_.data() + i * R;
      tiles_.made(tile, made);
      for (int r = 0; r < R; ++r)
        if (made[r] >= 0) made[r] += sample * y_pixels_;
    }
  }

 private:
  Tiles tiles_;
  int64_t x_pixels_, y_pixels_, channels_, most_;
  std::vector<int64_t> made_;  ///< [most_][R]
  std::vector<float> zeros_;   ///< a pixel of padding
};

}  // namespace tutti::winograd
