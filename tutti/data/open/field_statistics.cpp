#include "tutti/data/open/field_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/data/images/coded_image.h"

namespace tutti::data {
namespace {

struct ChannelSums {
  /// Sums x - first, so that digits remain where values lie far from 0. Exact for bytes.
  double first = NAN, sum = 0, squares = 0, least = INFINITY, greatest = -INFINITY;
  void add(double x) {
    if (std::isnan(first)) first = x;
    const double shifted = x - first;
    sum += shifted;
    squares += shifted * shifted;
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  }
};

/// `x` is [outer, channels, each].
template <class T>
void add_all(const T* x, std::vector<ChannelSums>& channels, int64_t outer, int64_t each) {
  for (int64_t o = 0; o < outer; ++o)
    for (ChannelSums& channel : channels)
      for (int64_t i = 0; i < each; ++i) channel.add(number_of(*x++));
}

/// Reads whole images, decoded at their stored size: all pixels of a channel count equally.
FieldStatistics image_statistics(const Dataset& dataset, size_t index) {
  struct Sums {
    int64_t sum = 0, squares = 0;  // exact up to 10^14 pixels
    uint8_t least = 255, greatest = 0;
  };
  std::array<Sums, 3> sums;
  int64_t pixels = 0;
  Sample sample(dataset.fields());
  DecodedImage image;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, sample);
    decode_whole(sample.coded_at(index), sample.origin(), image);
    pixels += image.size.height * image.size.width;
    for (size_t at = 0; at < image.rgbx.size(); ++at)
      if (const size_t channel = at % 4; channel < 3) {
        const uint8_t x = image.rgbx[at];
        sums[channel].sum += x;
        sums[channel].squares += x * x;
        sums[channel].least = std::min(sums[channel].least, x);
        sums[channel].greatest = std::max(sums[channel].greatest, x);
      }
  }
  FieldStatistics result;
  for (const Sums& channel : sums) {
    const double n = static_cast<double>(pixels), mean = static_cast<double>(channel.sum) / n,
                 square = static_cast<double>(channel.squares) / n;
    result.mean.push_back(static_cast<float>(mean / 255));
    result.deviation.push_back(
        static_cast<float>(std::sqrt(std::max(square - mean * mean, 0.0)) / 255));
    result.least.push_back(static_cast<float>(channel.least) / 255);
    result.greatest.push_back(static_cast<float>(channel.greatest) / 255);
  }
  return result;
}

}  // namespace

FieldStatistics field_statistics(const Dataset& dataset, std::string_view name, int axis) {
  const size_t index = field_index(dataset, name);
  const Field& field = dataset.fields()[index];
  if (field.coded) return image_statistics(dataset, index);
  const bool number = field.shape.rank() == 0;
  CHECK(number || axis < field.shape.rank(), "axis {} of {}", axis, field.to_string());
  const int64_t channels = number ? 1 : field.shape[axis],
                inner = number ? 1 : field.shape.elements_from(axis + 1),
                each = field.elements() / std::max<int64_t>(channels, 1),
                outer = each / std::max<int64_t>(inner, 1);
  std::vector<ChannelSums> sums(static_cast<size_t>(channels));
  Sample sample(dataset.fields());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, sample);
    with_elements(field.element, sample.at(index),
                  [&](const auto* x) { add_all(x, sums, outer, inner); });
  }
  FieldStatistics result;
  const double n = static_cast<double>(dataset.size()) * static_cast<double>(each),
               unit = field.element == ElementType::u8 ? 255 : 1;
  for (const ChannelSums& channel : sums) {
    const double shifted = channel.sum / n, mean = channel.first + shifted,
                 variance = channel.squares / n - shifted * shifted;
    result.mean.push_back(static_cast<float>(mean / unit));
    result.deviation.push_back(static_cast<float>(std::sqrt(std::max(variance, 0.0)) / unit));
    result.least.push_back(static_cast<float>(channel.least / unit));
    result.greatest.push_back(static_cast<float>(channel.greatest / unit));
  }
  return result;
}

}  // namespace tutti::data
