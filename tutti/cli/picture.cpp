#include "tutti/cli/picture.h"

#include <algorithm>
#include <cmath>

#include "tutti/data/format/png_file.h"

namespace tutti {
namespace {

constexpr Colour kWhite = {255, 255, 255}, kGrey = {160, 160, 160}, kBlue = {31, 99, 180};
constexpr int64_t kGap = 6, kLeastSide = 200;

/// The values between which most lie.
std::pair<float, float> usual_range(const std::vector<float>& values) {
  std::vector<float> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](float v) { return std::isfinite(v); });
  if (finite.empty()) return {0, 1};
  std::ranges::sort(finite);
  const size_t cut = finite.size() / 50;
  return {finite[cut], finite[finite.size() - 1 - cut]};
}

}  // namespace

Picture::Picture(int64_t width, int64_t height)
    : width_(width), height_(height), rgb_(static_cast<size_t>(width * height * 3), 255) {}

void Picture::set(int64_t x, int64_t y, Colour colour) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::ranges::copy(colour, rgb_.begin() + (y * width_ + x) * 3);
}

void Picture::fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour colour) {
  for (int64_t v = y; v < y + height; ++v)
    for (int64_t u = x; u < x + width; ++u) set(u, v, colour);
}

void Picture::save(const std::filesystem::path& path) const {
  data::write_png(path, width_, height_, rgb_);
}

Colour on_scale(double value) {
  if (!std::isfinite(value)) return kGrey;
  // Viridis at five places (Smith and van der Walt, Matplotlib, CC0).
  constexpr std::array<std::array<double, 3>, 5> places = {
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  const double at = std::clamp(value, 0.0, 1.0) * 4;
  const auto below = std::min<size_t>(static_cast<size_t>(at), 3);
  Colour colour{};
  for (size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<uint8_t>(std::lround(
        std::lerp(places[below][c], places[below + 1][c], at - static_cast<double>(below))));
  return colour;
}

Colour of_class(int64_t number) {
  constexpr std::array<Colour, 7> colours = {{{214, 39, 40},
                                              {31, 119, 180},
                                              {44, 160, 44},
                                              {255, 127, 14},
                                              {148, 103, 189},
                                              {140, 86, 75},
                                              {23, 190, 207}}};
  return number <= 0 ? kWhite : colours[static_cast<size_t>((number - 1) % 7)];
}

Picture side_by_side(std::span<const Panel> panels) {
  int64_t width = -kGap, height = 0;
  for (const Panel& panel : panels) {
    width += panel.sheet.width + kGap;
    height = std::max(height, panel.sheet.height);
  }
  const int64_t zoom = std::max<int64_t>(1, kLeastSide / std::max<int64_t>(height, 1));
  width += (zoom - 1) * (width - kGap * (std::ssize(panels) - 1));
  Picture picture(width, height * zoom);
  picture.fill(0, 0, width, height * zoom, kGrey);
  int64_t left = 0;
  for (const auto& [sheet, scale] : panels) {
    const auto [low, high] = usual_range(sheet.values);
    for (int64_t y = 0; y < sheet.height; ++y)
      for (int64_t x = 0; x < sheet.width; ++x) {
        const float value = sheet.values[static_cast<size_t>(y * sheet.width + x)];
        picture.fill(left + x * zoom, y * zoom, zoom, zoom,
                     scale ? on_scale(high > low ? (value - low) / (high - low) : 0.5)
                           : of_class(static_cast<int64_t>(value)));
      }
    left += sheet.width * zoom + kGap;
  }
  return picture;
}

Picture scatter(std::span<const float> truth, std::span<const float> prediction) {
  constexpr int64_t kSide = 320, kEdge = 10;
  Picture picture(kSide, kSide);
  std::vector<float> all(truth.begin(), truth.end());
  all.insert(all.end(), prediction.begin(), prediction.end());
  std::erase_if(all, [](float v) { return !std::isfinite(v); });
  if (all.empty()) return picture;
  const auto [low, high] = std::ranges::minmax(all);
  const double span = std::max(high - low, 1e-30f);
  const auto place = [&, least = low](float v) {
    return kEdge + std::lround((v - least) / span * (kSide - 1 - 2 * kEdge));
  };
  for (int64_t i = kEdge; i < kSide - kEdge; ++i) {
    picture.set(i, kSide - 1 - i, kGrey);
    for (const int64_t edge : {kEdge, kSide - 1 - kEdge}) {
      picture.set(i, edge, kGrey);
      picture.set(edge, i, kGrey);
    }
  }
  for (size_t i = 0; i < truth.size(); ++i)
    if (std::isfinite(truth[i]) && std::isfinite(prediction[i]))
      picture.fill(place(truth[i]) - 1, kSide - 2 - place(prediction[i]), 3, 3, kBlue);
  return picture;
}

}  // namespace tutti
