#include "tutti/data/images/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

constexpr int kWeightBits = 14, kRowBits = 6;

/// The input pixels of an output pixel, with weights [first, first + count) of the table.
struct Taps {
  struct Range {
    int64_t from = 0;  ///< the input pixel of the first weight
    size_t first = 0, count = 0;
  };
  std::vector<Range> ranges;
  std::vector<int16_t> weights;
};

/// Rounds weights so that each output's add up to 1 exactly: a flat image stays the same.
Taps taps_along(double begin, double extent, int64_t low, int64_t high, int64_t outputs) {
  Taps taps;
  const double scale = extent / static_cast<double>(outputs), support = std::max(scale, 1.0);
  std::vector<double> exact;
  for (int64_t o = 0; o < outputs; ++o) {
    const double centre = begin + (static_cast<double>(o) + 0.5) * scale;
    const int64_t from =
        std::clamp(static_cast<int64_t>(std::floor(centre - support + 0.5)), low, high - 1);
    const int64_t to =
        std::clamp(static_cast<int64_t>(std::floor(centre + support + 0.5)), from + 1, high);
    exact.clear();
    double sum = 0;
    for (int64_t i = from; i < to; ++i) {
      const double away = std::abs((static_cast<double>(i) - centre + 0.5) / support);
      exact.push_back(std::max(1 - away, 0.0));
      sum += exact.back();
    }
    if (sum <= 0) exact.assign(1, sum = 1);
    taps.ranges.push_back({from, taps.weights.size(), exact.size()});
    double so_far = 0;
    int64_t given = 0;
    for (const double weight : exact) {
      so_far += weight / sum;
      const auto up_to = static_cast<int64_t>(std::lround(so_far * (1 << kWeightBits)));
      taps.weights.push_back(static_cast<int16_t>(up_to - given));
      given = up_to;
    }
  }
  return taps;
}

/// The four bytes of a pixel as floats in one register, and four integers likewise.
typedef float Pixel4 __attribute__((vector_size(16)));
typedef int32_t Whole4 __attribute__((vector_size(16)));

/// Sets row = sum of weight * input row, for `count` bytes from `first` on, with kRowBits more bits
/// than pixels. Every processor has vector instructions for products of 16 bits by 16 to 32.
void blend_rows(const uint8_t* first, size_t stride, const int16_t* weights, size_t taps,
                size_t count, float* row) {
  constexpr size_t kBlock = 512;
  int32_t sums[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t here = std::min(kBlock, count - at);
    std::fill_n(sums, here, 1 << (kWeightBits - kRowBits - 1));
    for (size_t t = 0; t < taps; ++t) {
      const uint8_t* in = first + t * stride + at;
      const int16_t weight = weights[t];
      for (size_t i = 0; i < here; ++i) sums[i] += weight * static_cast<int16_t>(in[i]);
    }
    for (size_t i = 0; i < here; ++i)
      row[at + i] = static_cast<float>(sums[i] >> (kWeightBits - kRowBits));
  }
}

/// Returns an output pixel: the weighted sum of `taps` pixels of a row, added in their order.
Whole4 blend_pixels(const float* in, const float* weights, size_t taps) {
  Pixel4 sum = {0.5f, 0.5f, 0.5f, 0.5f};
  for (size_t t = 0; t < taps; ++t) {
    Pixel4 pixel;
    std::memcpy(&pixel, in + 4 * t, sizeof pixel);
    sum += pixel * weights[t];
  }
  return __builtin_convertvector(sum, Whole4);
}

}  // namespace

void resample(const DecodedImage& image, const ImageBox& box, const ImageWindow& bounds,
              const ImageSize& size, uint8_t* out) {
  const int64_t low_x = std::max(bounds.left, image.left),
                high_x = std::min(bounds.left + bounds.width, image.left + image.size.width),
                low_y = std::max(bounds.top, image.top),
                high_y = std::min(bounds.top + bounds.height, image.top + image.size.height);
  CHECK(low_x < high_x && low_y < high_y, "no pixel of a window of {} x {} was decoded",
        bounds.width, bounds.height);
  const Taps down = taps_along(box.top, box.height, low_y, high_y, size.height),
             across = taps_along(box.left, box.width, low_x, high_x, size.width);
  const int64_t first_x = across.ranges.front().from,
                last_x =
                    across.ranges.back().from + static_cast<int64_t>(across.ranges.back().count);
  const auto row_values = static_cast<size_t>(last_x - first_x) * 4;
  const auto stride = static_cast<size_t>(image.size.width) * 4;
  std::vector<float> row(row_values), weights;
  for (const int16_t weight : across.weights)
    weights.push_back(static_cast<float>(weight) / (1 << (kWeightBits + kRowBits)));
  const auto plane = static_cast<size_t>(size.height * size.width);
  for (size_t y = 0; y < down.ranges.size(); ++y) {
    const Taps::Range& rows = down.ranges[y];
    blend_rows(image.rgbx.data() + static_cast<size_t>(rows.from - image.top) * stride +
                   static_cast<size_t>(first_x - image.left) * 4,
               stride, down.weights.data() + rows.first, rows.count, row_values, row.data());
    uint8_t* line = out + y * static_cast<size_t>(size.width);
    for (size_t x = 0; x < across.ranges.size(); ++x) {
      const Taps::Range& columns = across.ranges[x];
      const Whole4 pixel =
          blend_pixels(row.data() + static_cast<size_t>(columns.from - first_x) * 4,
                       weights.data() + columns.first, columns.count);
      for (size_t c = 0; c < 3; ++c) line[c * plane + x] = static_cast<uint8_t>(pixel[c]);
    }
  }
}

}  // namespace tutti::data
