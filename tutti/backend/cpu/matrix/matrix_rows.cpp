#include "tutti/backend/cpu/matrix/matrix_rows.h"

#include <algorithm>

#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend::matrix {
namespace {

/// Walks results [first, first + rows) of a lattice as runs along the innermost dimension:
/// f(outer index, middle index, first inner index, length).
template <class F>
void for_runs(const Lattice& lattice, int64_t first, int64_t rows, F f) {
  int64_t inner = first % lattice.count[2];
  int64_t line = first / lattice.count[2];
  for (int64_t n = 0; rows > 0; rows -= n, inner = 0, ++line) {
    n = std::min(rows, lattice.count[2] - inner);
    f(line / lattice.count[1], line % lattice.count[1], inner, n);
  }
}

void copy_floats(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + simd::kLanes <= n; i += simd::kLanes)
    simd::store(to + i, simd::load(from + i, simd::AllLanes{}), simd::AllLanes{});
  for (; i < n; ++i) to[i] = from[i];
}

bool inside(int64_t i, int64_t extent) { return i >= 0 && i < extent; }

/// Walks the pixels that results [first, first + rows) read with the tap, as runs along the
/// innermost dimension: f(first pixel of a line, its pixels (0: it is padding), place in it that
/// the run's first result reads, length); one result further is a step further in the line.
template <class F>
void for_lines(const Lattice& lattice, const Lattice::Tap& tap, int64_t first, int64_t rows, F f) {
  for_runs(lattice, first, rows, [&](int64_t d, int64_t h, int64_t w, int64_t n) {
    const int64_t id = d * lattice.step[0] + tap.offset[0];
    const int64_t ih = h * lattice.step[1] + tap.offset[1];
    const bool line = inside(id, lattice.from[0]) && inside(ih, lattice.from[1]);
    f((id * lattice.from[1] + ih) * lattice.from[2], line ? lattice.from[2] : 0,
      w * lattice.step[2] + tap.offset[2], n);
  });
}

/// Returns whether any of the results reads a pixel by this tap.
bool reads_any(const Lattice& lattice, const Lattice::Tap& tap, int64_t first, int64_t rows) {
  bool any = false;
  for_lines(lattice, tap, first, rows, [&](int64_t, int64_t width, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n && !any; ++i) any = inside(begin + i * lattice.step[2], width);
  });
  return any;
}

}  // namespace

Sliding Sliding::of(const ops::ConvAttributes& a, const Shape& x, const Shape& y, const Shape& w) {
  Sliding sliding;
  for (int d = 0; d < a.spatial; ++d) {
    const auto to = static_cast<size_t>(3 - a.spatial + d), from = static_cast<size_t>(d);
    sliding.x[to] = x[d + 2];
    sliding.y[to] = y[d + 2];
    sliding.kernel[to] = w[d + 2];
    sliding.stride[to] = a.stride[from];
    sliding.dilation[to] = a.dilation[from];
    sliding.pad[to] = a.pad_low[from];
  }
  return sliding;
}

bool Lattice::in_place() const {
  return taps.size() == 1 && taps[0].offset == Extents{} && step == Extents{1, 1, 1} &&
         count == from && first == 0 && stride == Extents{count[1] * count[2], count[2], 1};
}

Lattice forward_lattice(const Sliding& sliding) {
  Lattice lattice{.count = sliding.y,
                  .step = sliding.stride,
                  .from = sliding.x,
                  .stride = {sliding.y[1] * sliding.y[2], sliding.y[2], 1}};
  for (int64_t t = 0; t < volume(sliding.kernel); ++t) {
    const Extents k{t / (sliding.kernel[1] * sliding.kernel[2]),
                    t / sliding.kernel[2] % sliding.kernel[1], t % sliding.kernel[2]};
    Lattice::Tap tap{.index = t};
    for (size_t d = 0; d < 3; ++d) tap.offset[d] = k[d] * sliding.dilation[d] - sliding.pad[d];
    lattice.taps.push_back(tap);
  }
  return lattice;
}

/// dx at i * stride + r sums dy at (i * stride + r - offset) / stride over the taps, whose offsets
/// are the forward convolution's, where this division is exact.
std::vector<Lattice> data_lattices(const Sliding& sliding) {
  const Lattice forward = forward_lattice(sliding);
  const Extents pixel{sliding.x[1] * sliding.x[2], sliding.x[2], 1};
  std::vector<Lattice> all;
  for (int64_t n = 0; n < volume(sliding.stride); ++n) {
    const Extents r{n / (sliding.stride[1] * sliding.stride[2]),
                    n / sliding.stride[2] % sliding.stride[1], n % sliding.stride[2]};
    Lattice lattice{.from = sliding.y};
    for (size_t d = 0; d < 3; ++d) {
      lattice.count[d] =
          r[d] < sliding.x[d] ? (sliding.x[d] - r[d] - 1) / sliding.stride[d] + 1 : 0;
      lattice.first += r[d] * pixel[d];
      lattice.stride[d] = sliding.stride[d] * pixel[d];
    }
    for (const Lattice::Tap& of_y : forward.taps) {
      Lattice::Tap tap{.index = of_y.index};
      bool divides = true;
      for (size_t d = 0; d < 3; ++d) {
        const int64_t at = r[d] - of_y.offset[d];
        divides &= at % sliding.stride[d] == 0;
        tap.offset[d] = at / sliding.stride[d];
      }
      if (divides) lattice.taps.push_back(tap);
    }
    if (lattice.results() > 0) all.push_back(std::move(lattice));
  }
  return all;
}

void place(const Lattice& lattice, int64_t first, int64_t count, int64_t* pixels) {
  for_runs(lattice, first, count, [&](int64_t d, int64_t h, int64_t w, int64_t n) {
    const int64_t line = lattice.first + d * lattice.stride[0] + h * lattice.stride[1];
    for (int64_t i = w; i < w + n; ++i) *pixels++ = line + i * lattice.stride[2];
  });
}

bool read_pixels(const Lattice& lattice, const Lattice::Tap& tap, int64_t first, int64_t rows,
                 int64_t* pixels) {
  int64_t all = -1;  // combined by `and`: negative as long as there is no pixel
  for_lines(lattice, tap, first, rows, [&](int64_t line, int64_t width, int64_t begin, int64_t n) {
    const int64_t step = lattice.step[2];
    for (int64_t i = 0; i < n; ++i) {  // a vector at a time
      const int64_t at = begin + i * step;
      pixels[i] = at >= 0 && at < width ? line + at : -1;
      all &= pixels[i];
    }
    pixels += n;
  });
  return all >= 0;
}

bool gather(const Lattice& lattice, const Lattice::Tap& tap, const Channels& channels,
            int64_t first, int64_t rows, float* to, int64_t to_stride) {
  if (!reads_any(lattice, tap, first, rows)) return false;
  for_lines(lattice, tap, first, rows, [&](int64_t line, int64_t width, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i, begin += lattice.step[2], to += to_stride)
      if (inside(begin, width))
        copy_floats(channels.from + (line + begin) * channels.all + channels.first, to,
                    channels.count);
      else
        std::fill_n(to, channels.count, 0.f);
  });
  return true;
}

Layout panels_layout(int rank, bool data) {
  Layout layout;
  const int8_t columns = data ? 1 : 0, rows = data ? 0 : 1;
  for (int i = 1; i + 1 < rank; ++i)
    layout.order[static_cast<size_t>(i)] = static_cast<int8_t>(i + 1);
  layout.order[0] = columns;
  layout.order[static_cast<size_t>(rank - 1)] = rows;
  layout.blocks[0] = {columns, kColumns};
  layout.num_blocks = 1;
  return layout;
}

}  // namespace tutti::backend::matrix
