#include "tutti/backend/cpu/conv/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::backend::winograd {

double relative_error(int spatial) {
  return std::round(10 * std::sqrt((2 * std::pow(5.0 / 3, spatial) + 1) / 2)) / 10;
}

namespace {

/// Less than any sum of a pixel's other terms.
constexpr int64_t kOutside = std::numeric_limits<int64_t>::min() / 4;

/// Returns where a dimension's tiles begin.
std::vector<int64_t> origins(int64_t end, int64_t step, int64_t apart) {
  std::vector<int64_t> all;
  for (int64_t least = 0; least < apart; ++least)
    for (int64_t o = least; o < end; o += step) all.push_back(o);
  return all;
}

}  // namespace

Tiles::Tiles(const Sliding& s, Along along)
    : deep_(s.kernel[0] == kTaps), x_pixels_(matrix::volume(s.x)), y_pixels_(matrix::volume(s.y)) {
  CHECK(along == Along::gathered || s.dilation[first()] == 1, "spread tiles of a dilation of {}",
        s.dilation[first()]);
  int64_t x_stride = x_pixels_, y_stride = y_pixels_;  // between neighbours of a dimension
  for (size_t d = 0; d < 3; ++d) {
    const bool flat = s.kernel[d] == 1, spread = along == Along::spread && d == first();
    const int64_t apart = flat ? 1 : s.dilation[d];
    // Rows of dx begin at the first tap's input in the convolution whose gradient is dy.
    const int64_t reads_from = spread ? 0 : -s.pad[d],
                  makes_from = spread ? s.pad[d] + 1 - kTaps : 0;
    const std::vector<int64_t> tiles =
        origins(spread ? s.x[d] : s.y[d], flat ? 1 : kResults * apart, apart);
    const auto terms = [&](int of_tile, int64_t from, int64_t extent, int64_t& stride) {
      stride /= extent;
      Terms made{of_tile};
      for (const int64_t tile : tiles)
        for (int k = 0; k < of_tile; ++k) {
          const int64_t at = tile + from + k * apart;
          made.all.push_back(at >= 0 && at < extent ? at * stride : kOutside);
        }
      return made;
    };
    reads_[d] = terms(flat ? 1 : spread ? kResults : kPoints, reads_from, s.x[d], x_stride);
    makes_[d] = terms(flat ? 1 : spread ? kPoints : kResults, makes_from, s.y[d], y_stride);
  }
  if (along == Along::spread) {
    constexpr int64_t kMostOfSheet = 64;  // kernels multiply whole sheets at a time
    for (int64_t n = 1; n <= tiles_along(2) && n * column() <= kMostOfSheet; ++n)
      if (tiles_along(2) % n == 0) beside_ = n;
    order_ = {Turn{2, beside_}, Turn{first(), column()}, Turn{2, tiles_along(2) / beside_, beside_},
              Turn{deep_ ? 1U : 0U, tiles_along(deep_ ? 1 : 0)}};
  } else {
    order_ = {Turn{2, tiles_along(2)}, Turn{1, tiles_along(1)}, Turn{0, tiles_along(0)}, Turn{}};
  }
}

int64_t Tiles::tiles_along(size_t d) const {
  return static_cast<int64_t>(reads_[d].all.size()) / reads_[d].of_tile;
}

int64_t Tiles::count() const { return tiles_along(0) * tiles_along(1) * tiles_along(2); }

Tiles::Walk::Walk(const Tiles& tiles, int64_t first)
    : tiles_(tiles), sample_(first / tiles.count()) {
  first %= tiles.count();
  for (size_t t = 0; t < turned_.size(); ++t) {
    const Turn& turn = tiles.order_[t];
    turned_[t] = first % turn.count;
    first /= turn.count;
    at_[turn.dim] += turned_[t] * turn.step;
  }
}

void Tiles::Walk::next() {
  for (size_t t = 0; t < turned_.size(); ++t) {
    const Turn& turn = tiles_.order_[t];
    at_[turn.dim] += turn.step;
    if (++turned_[t] < turn.count) return;
    at_[turn.dim] -= turn.count * turn.step;
    turned_[t] = 0;
  }
  ++sample_;
}

void Tiles::Walk::made(int64_t* pixels) const {
  const auto& makes = tiles_.makes_;
  for (int z = 0; z < makes[0].of_tile; ++z, pixels += makes[1].of_tile * makes[2].of_tile)
    add_terms(sample_ * tiles_.y_pixels_ + makes[0].of(at_[0])[z], makes[1].of(at_[1]),
              makes[1].of_tile, makes[2].of(at_[2]), makes[2].of_tile, pixels);
}

}  // namespace tutti::backend::winograd
