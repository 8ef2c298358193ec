#include "tutti/backend/cpu/winograd.h"

#include <cmath>

#include "tutti/base/error.h"

namespace tutti::winograd {

double relative_error(int spatial) {
  return std::round(10 * std::sqrt((2 * std::pow(5.0 / 3, spatial) + 1) / 2)) / 10;
}

Tiles::Tiles(const Sliding& sliding, Along along)
    : s_(sliding), deep_(sliding.kernel[0] == kTaps), along_(along) {
  CHECK(along == Along::gathered || s_.dilation[first()] == 1, "spread tiles of a dilation of {}",
        s_.dilation[first()]);
  for (size_t d = 0; d < 3; ++d) {
    const bool flat = s_.kernel[d] == 1;
    const int64_t apart = flat ? 1 : s_.dilation[d], step = flat ? 1 : kResults * apart;
    const int64_t end = along == Along::spread && d == first() ? s_.x[d] : s_.y[d];
    for (int64_t least = 0; least < apart; ++least)
      for (int64_t o = least; o < end; o += step) origins_[d].push_back(o);
  }
  if (along == Along::gathered) return;
  constexpr int64_t kMostOfSheet = 64;  // what kernels multiply at a time is made of whole sheets
  const auto columns = static_cast<int64_t>(origins_[2].size());
  for (int64_t n = 1; n <= columns && n * column() <= kMostOfSheet; ++n)
    if (columns % n == 0) beside_ = n;
}

int64_t Tiles::count() const {
  return static_cast<int64_t>(origins_[0].size() * origins_[1].size() * origins_[2].size());
}

std::array<int64_t, 3> Tiles::origin(int64_t tile) const {
  const auto next = [&](int64_t count) {
    const int64_t i = tile % count;
    tile /= count;
    return i;
  };
  const auto tiles = [&](size_t d) { return static_cast<int64_t>(origins_[d].size()); };
  std::array<int64_t, 3> i{};
  if (along_ == Along::spread) {
    i[2] = next(beside_);
    i[first()] = next(column());
    i[2] += beside_ * next(tiles(2) / beside_);
    if (deep_) i[1] = next(tiles(1));
  } else {
    for (const size_t d : {2, 1, 0}) i[d] = next(tiles(d));
  }
  for (size_t d = 0; d < 3; ++d) i[d] = origins_[d][static_cast<size_t>(i[d])];
  return i;
}

namespace {

/// Pixels first + i * step of a plane, for `rows` and `columns` i in its dimensions; -1 outside of
/// the extents, and everywhere if the plane itself is.
void plane_pixels(const Extents& first, const Extents& step, const Extents& extents, int rows,
                  int columns, int64_t* pixels) {
  const auto inside = [&](size_t d, int64_t at) { return at >= 0 && at < extents[d]; };
  const bool plane = inside(0, first[0]);
  for (int j = 0; j < rows; ++j) {
    const int64_t y = first[1] + j * step[1], row = (first[0] * extents[1] + y) * extents[2];
    const bool there = plane && inside(1, y);
    for (int k = 0; k < columns; ++k) {
      const int64_t x = first[2] + k * step[2];
      *pixels++ = there && inside(2, x) ? row + x : -1;
    }
  }
}

}  // namespace

void Tiles::read(int64_t tile, int plane, int64_t* pixels) const {
  Extents first_read = origin(tile);
  for (size_t d = 0; d < 3; ++d)
    if (along_ == Along::gathered || d != first()) first_read[d] -= s_.pad[d];
  first_read[0] += plane * s_.dilation[0];
  plane_pixels(first_read, s_.dilation, s_.x, deep_ ? kPoints : reads(), kPoints, pixels);
}

void Tiles::made(int64_t tile, int64_t* pixels) const {
  Extents first_made = origin(tile);
  // Rows of dx begin where the first tap of the convolution that dy is of reads.
  if (along_ == Along::spread) first_made[first()] -= kTaps - 1 - s_.pad[first()];
  const int rows = deep_ ? kResults : makes();
  for (int z = 0; z < (deep_ ? makes() : 1); ++z, first_made[0] += s_.dilation[0])
    plane_pixels(first_made, s_.dilation, s_.y, rows, kResults, pixels + z * rows * kResults);
}

}  // namespace tutti::winograd
