#include "tutti/data/dataset.h"

#include <cmath>

namespace tutti::data {

ChannelStatistics channel_statistics(const Dataset& dataset) {
  const ImageShape shape = dataset.shape();
  const int64_t plane = int64_t{shape.height} * shape.width;
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.pixels()));
  std::vector<uint64_t> sum(static_cast<size_t>(shape.channels)), squares(sum.size());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    int32_t label = 0;
    dataset.read(i, pixels.data(), &label);
    for (size_t c = 0; c < sum.size(); ++c) {
      const uint8_t* x = pixels.data() + static_cast<int64_t>(c) * plane;
      uint64_t s = 0, s2 = 0;
      for (int64_t j = 0; j < plane; ++j) {
        s += x[j];
        s2 += uint32_t{x[j]} * x[j];
      }
      sum[c] += s;
      squares[c] += s2;
    }
  }
  ChannelStatistics result;
  const double n = static_cast<double>(dataset.size()) * static_cast<double>(plane);
  for (size_t c = 0; c < sum.size(); ++c) {
    const double mean = static_cast<double>(sum[c]) / n;
    const double variance = static_cast<double>(squares[c]) / n - mean * mean;
    result.mean.push_back(static_cast<float>(mean / 255));
    result.deviation.push_back(static_cast<float>(std::sqrt(variance) / 255));
  }
  return result;
}

}  // namespace tutti::data
