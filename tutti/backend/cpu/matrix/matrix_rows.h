#pragma once
// Tells which pixels the results of a convolution read, tap by tap, and gathers their channels into
// the rows of a matrix. Tensors are channels last; the first dimension is 1 in a 2-D convolution.

#include <array>
#include <cstdint>
#include <vector>

#include "tutti/ops/conv.h"

namespace tutti::backend::matrix {

using Extents = std::array<int64_t, 3>;

inline int64_t volume(const Extents& e) { return e[0] * e[1] * e[2]; }

/// One convolution y = conv(x, w), without its channels.
struct Sliding {
  Extents x{1, 1, 1}, y{1, 1, 1}, kernel{1, 1, 1};
  Extents stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  static Sliding of(const ops::ConvAttributes& a, const Shape& x, const Shape& y, const Shape& w);
};

/// Results with the same taps, and the pixels that they read: result i, index by index, reads pixel
/// i * step + tap.offset.
struct Lattice {
  struct Tap {
    int64_t index = 0;  ///< among all taps of the kernel
    Extents offset{};
  };
  Extents count{};  ///< results in each dimension; any may be 0
  Extents step{1, 1, 1};
  Extents from{};           ///< extents of the tensor that is read
  int64_t first = 0;        ///< the result's pixel at index 0 ...
  Extents stride{};         ///< ... and between neighbours of each dimension
  std::vector<Tap> taps{};  ///< in order of index; none: the results are 0
  int64_t results() const { return volume(count); }
  /// Returns whether results are pixels in a row, and each reads the pixel at its own place.
  bool in_place() const;
};

/// For y there is one lattice; for dx one for each remainder of dividing a pixel's index by the
/// stride.
Lattice forward_lattice(const Sliding& sliding);
std::vector<Lattice> data_lattices(const Sliding& sliding);

/// Returns the places of results [first, first + count) of the lattice, in pixels.
void place(const Lattice& lattice, int64_t first, int64_t count, int64_t* pixels);

/// Finds the pixel that each of the results [first, first + rows) reads by the tap; -1: padding.
/// Returns false if all is padding.
bool read_pixels(const Lattice& lattice, const Lattice::Tap& tap, int64_t first, int64_t rows,
                 int64_t* pixels);

/// Channels of one tensor to take from each pixel.
struct Channels {
  const float* from = nullptr;  ///< the sample's first pixel
  int64_t all = 0;              ///< channels of a pixel
  int64_t first = 0, count = 0;
};

/// Copies, for results [first, first + rows), the channels that they read by the tap, 0 for
/// padding; row r at to + r * to_stride. Returns false if all is padding: nothing is written then.
bool gather(const Lattice& lattice, const Lattice::Tap& tap, const Channels& channels,
            int64_t first, int64_t rows, float* to, int64_t to_stride);

/// Returns the layout [K/16, kernel..., C, 16], or with `data` [C/16, kernel..., K, 16], for
/// weights with this rank.
Layout panels_layout(int rank, bool data);

}  // namespace tutti::backend::matrix
