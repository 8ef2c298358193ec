#include "tutti/cli/infer/picture.h"

#include <algorithm>
#include <cmath>

#include "tutti/data/file/png_file.h"

namespace tutti::cli {
namespace {

constexpr Colour kWhite = {255, 255, 255}, kGrey = {160, 160, 160}, kBlue = {31, 99, 180};
constexpr int64_t kGap = 6, kLeastSide = 200, kCurveWidth = 400, kMostZoomed = 2000;

/// Returns the range that holds most values.
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
  // Viridis at five points (Smith and van der Walt, Matplotlib, CC0).
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

namespace {

bool is_series(const Panel& panel) { return panel.sheet.height == 1; }

/// Returns how many pixels of the picture a pixel of a sheet takes, each way.
int64_t zoom_of(std::span<const Panel> panels) {
  int64_t width = 1, height = 1;
  for (const Panel& panel : panels) {
    if (is_series(panel)) continue;
    width = std::max(width, panel.sheet.width);
    height = std::max(height, panel.sheet.height);
  }
  return std::max<int64_t>(1, std::min(kLeastSide / height, kMostZoomed / width));
}

/// Fills each column of the picture from the least to the largest value of the curve in it.
void draw_curve(Picture& picture, int64_t left, const std::vector<float>& values) {
  picture.fill(left, 0, kCurveWidth, picture.height(), kWhite);
  double low = INFINITY, high = -INFINITY;
  for (const double v : values)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  const double span = high > low ? high - low : 1, end = static_cast<double>(values.size()) - 1;
  const auto row = [&](double v) {
    return std::lround((high - v) / span * static_cast<double>(picture.height() - 1));
  };
  const auto at = [&](double place) -> double {
    const auto i = static_cast<size_t>(place);
    return std::lerp(values[i], values[std::min(i + 1, values.size() - 1)],
                     place - static_cast<double>(i));
  };
  for (int64_t u = 0; u < kCurveWidth; ++u) {
    const double from = end * static_cast<double>(u) / kCurveWidth,
                 to = end * static_cast<double>(u + 1) / kCurveWidth;
    double least = std::fmin(at(from), at(to)), most = std::fmax(at(from), at(to));
    for (double i = std::ceil(from); i <= to; ++i) {
      least = std::fmin(least, values[static_cast<size_t>(i)]);
      most = std::fmax(most, values[static_cast<size_t>(i)]);
    }
    if (std::isfinite(least) && std::isfinite(most))
      picture.fill(left + u, row(most), 1, row(least) - row(most) + 2, kBlue);
  }
}

/// Draws each value in its colour.
void draw_sheet(Picture& picture, int64_t left, int64_t zoom, const Panel& panel) {
  const Sheet& sheet = panel.sheet;
  const auto [low, high] = usual_range(sheet.values);
  for (int64_t y = 0; y < sheet.height; ++y)
    for (int64_t x = 0; x < sheet.width; ++x) {
      const float value = sheet.values[static_cast<size_t>(y * sheet.width + x)];
      picture.fill(left + x * zoom, y * zoom, zoom, zoom,
                   panel.scale ? on_scale(high > low ? (value - low) / (high - low) : 0.5)
                               : of_class(static_cast<int64_t>(value)));
    }
}

}  // namespace

Picture side_by_side(std::span<const Panel> panels) {
  const int64_t zoom = zoom_of(panels);
  const auto width_of = [&](const Panel& panel) {
    return is_series(panel) ? kCurveWidth : panel.sheet.width * zoom;
  };
  int64_t width = -kGap, height = 0;
  for (const Panel& panel : panels) {
    width += width_of(panel) + kGap;
    height = std::max(height, is_series(panel) ? kLeastSide : panel.sheet.height * zoom);
  }
  Picture picture(width, height);
  picture.fill(0, 0, width, height, kGrey);
  int64_t left = 0;
  for (const Panel& panel : panels) {
    if (is_series(panel))
      draw_curve(picture, left, panel.sheet.values);
    else
      draw_sheet(picture, left, zoom, panel);
    left += width_of(panel) + kGap;
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

}  // namespace tutti::cli
