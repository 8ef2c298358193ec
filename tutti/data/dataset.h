#pragma once
// Dataset: numbered labelled images. What a data set is, not where it came from (format/,
// generate/).

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::data {

/// Extents of every image of a set, in pixels.
struct ImageShape {
  int channels = 0;
  int height = 0;
  int width = 0;

  int64_t pixels() const { return int64_t{channels} * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// A fixed set of images with one label each. Immutable after opening: all const calls may run on
/// any number of threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual ImageShape shape() const = 0;
  /// Labels lie in [0, classes()); checked when the set is opened, so readers need not check again.
  virtual int classes() const = 0;
  /// classes() names, in label order.
  virtual const std::vector<std::string>& class_names() const = 0;
  /// Writes shape().pixels() bytes in CHW order and the label of image `index` in [0, size()).
  virtual void read(int64_t index, uint8_t* pixels, int32_t* label) const = 0;
};

/// Mean and standard deviation of every channel over the whole set, with pixels scaled to [0, 1];
/// what training normalises with.
struct ChannelStatistics {
  std::vector<float> mean;
  std::vector<float> deviation;
};

/// Exact integer sums over all images; reads the whole set once (about 0.1 s for CIFAR-10).
ChannelStatistics channel_statistics(const Dataset& dataset);

}  // namespace tutti::data
