#pragma once
// From the bytes of one image to its place in a minibatch: random crop, flip, normalisation, type
// and layout, in one pass.

#include <cstdint>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/tensor/tensor_desc.h"

namespace tutti::data {

struct AugmentSpec {
  uint64_t seed = 0;
  int pad = 0;  ///< zero pixels added on each side before a random crop of the original size; 4 is
                ///< usual for CIFAR-10
  bool flip = false;                ///< mirror left-right with probability 1/2
  ChannelStatistics normalization;  ///< y = (x / 255 - mean) / deviation per channel
};

/// Where the crop window starts in the padded image, and whether it is mirrored.
struct Crop {
  int top = 0;
  int left = 0;
  bool mirror = false;
  bool operator==(const Crop&) const = default;
};

/// The crop of sample `index` in `epoch`: a pure function of (seed, epoch, index). index < 2^40,
/// epoch < 2^24.
Crop random_crop(const AugmentSpec& spec, int64_t epoch, int64_t index);

/// Writes single images into a minibatch described by a TensorDesc [N, C, H, W] of f32 or bf16 in
/// any layout. Equal, bit for bit in f32, to torchvision's RandomCrop(size, padding),
/// RandomHorizontalFlip, ToTensor, Normalize: the padding is zero in pixel space, hence
/// -mean/deviation here. Channel padding of a blocked layout is not written: zero it once.
/// Immutable: calls for different positions may run on different threads.
class Augment {
 public:
  /// ConfigError if the statistics do not have one finite mean and one positive deviation per
  /// channel.
  Augment(const AugmentSpec& spec, const ImageShape& image, const TensorDesc& batch);

  const TensorDesc& batch() const { return batch_; }
  const ImageShape& image() const { return image_; }

  /// CHW bytes -> image `position` of `batch`, with the random crop of (epoch, index).
  void write_random(const uint8_t* pixels, int64_t epoch, int64_t index, int64_t position,
                    void* batch) const {
    write(pixels, random_crop(spec_, epoch, index), position, batch);
  }
  /// The same without augmentation, for evaluation.
  void write_whole(const uint8_t* pixels, int64_t position, void* batch) const {
    write(pixels, {spec_.pad, spec_.pad, false}, position, batch);
  }
  void write(const uint8_t* pixels, const Crop& crop, int64_t position, void* batch) const;

 private:
  AugmentSpec spec_;
  ImageShape image_;
  TensorDesc batch_;
  // What each byte becomes, per channel: [C][256]. One of the two, by the type of the batch.
  std::vector<float> floats_;
  std::vector<bf16> halves_;
  // Layout offsets are sums of one term per dimension, so four small tables replace
  // Layout::offset() in the loop.
  std::vector<int64_t> image_offset_, channel_offset_, row_offset_, column_offset_;
  int64_t column_stride_ = 0;  // of column_offset_ where it is linear, otherwise 0
};

}  // namespace tutti::data
