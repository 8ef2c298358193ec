#include "tutti/backend/cpu/winograd.h"

namespace tutti::winograd {

Tiles::Tiles(const Sliding& sliding) : s_(sliding), deep_(sliding.kernel[0] == kTaps) {
  for (size_t d = 0; d < 3; ++d) {
    const bool flat = s_.kernel[d] == 1;
    const int64_t apart = flat ? 1 : s_.dilation[d], step = flat ? 1 : kResults * apart;
    for (int64_t first = 0; first < apart; ++first)
      for (int64_t o = first; o < s_.y[d]; o += step) origins_[d].push_back(o);
  }
}

int64_t Tiles::count() const {
  return static_cast<int64_t>(origins_[0].size() * origins_[1].size() * origins_[2].size());
}

std::array<int64_t, 3> Tiles::origin(int64_t tile) const {
  const auto rows = static_cast<int64_t>(origins_[1].size()),
             columns = static_cast<int64_t>(origins_[2].size());
  return {origins_[0][static_cast<size_t>(tile / columns / rows)],
          origins_[1][static_cast<size_t>(tile / columns % rows)],
          origins_[2][static_cast<size_t>(tile % columns)]};
}

namespace {

/// Pixels first + i * step of a plane, for i below `count` in both dimensions; -1 outside of the
/// extents, and everywhere if the plane itself is.
void plane_pixels(const Extents& first, const Extents& step, const Extents& extents, int count,
                  int64_t* pixels) {
  const auto inside = [&](size_t d, int64_t at) { return at >= 0 && at < extents[d]; };
  const bool plane = inside(0, first[0]);
  for (int j = 0; j < count; ++j) {
    const int64_t y = first[1] + j * step[1], row = (first[0] * extents[1] + y) * extents[2];
    const bool there = plane && inside(1, y);
    for (int k = 0; k < count; ++k) {
      const int64_t x = first[2] + k * step[2];
      *pixels++ = there && inside(2, x) ? row + x : -1;
    }
  }
}

}  // namespace

void Tiles::read(int64_t tile, int plane, int64_t* pixels) const {
  Extents first = origin(tile);
  for (size_t d = 0; d < 3; ++d) first[d] -= s_.pad[d];
  first[0] += plane * s_.dilation[0];
  plane_pixels(first, s_.dilation, s_.x, kPoints, pixels);
}

void Tiles::made(int64_t tile, int64_t* pixels) const {
  Extents first = origin(tile);
  for (int z = 0; z < (deep_ ? kResults : 1); ++z, first[0] += s_.dilation[0])
    plane_pixels(first, s_.dilation, s_.y, kResults, pixels + z * power(kResults, false));
}

}  // namespace tutti::winograd
