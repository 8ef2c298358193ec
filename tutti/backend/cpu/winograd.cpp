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

/// Pixels first[d] + i * step[d], for i below `count` in each transformed dimension; -1 outside of
/// the extents.
void lattice_pixels(const Extents& first, const Extents& step, const Extents& extents, int count,
                    bool deep, int64_t* pixels) {
  const auto inside = [&](size_t d, int64_t at) { return at >= 0 && at < extents[d]; };
  for (int i = 0; i < (deep ? count : 1); ++i) {
    const int64_t z = first[0] + i * step[0];
    for (int j = 0; j < count; ++j) {
      const int64_t y = first[1] + j * step[1];
      const bool row = inside(0, z) && inside(1, y);
      for (int k = 0; k < count; ++k) {
        const int64_t x = first[2] + k * step[2];
        *pixels++ = row && inside(2, x) ? (z * extents[1] + y) * extents[2] + x : -1;
      }
    }
  }
}

}  // namespace

void Tiles::read(int64_t tile, int64_t* pixels) const {
  Extents first = origin(tile);
  for (size_t d = 0; d < 3; ++d) first[d] -= s_.pad[d];
  lattice_pixels(first, s_.dilation, s_.x, kPoints, deep_, pixels);
}

void Tiles::made(int64_t tile, int64_t* pixels) const {
  lattice_pixels(origin(tile), s_.dilation, s_.y, kResults, deep_, pixels);
}

}  // namespace tutti::winograd
