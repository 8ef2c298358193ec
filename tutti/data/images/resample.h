#pragma once
// Resamples 8-bit images: bilinear with antialiasing, as PIL's BILINEAR and torchvision's
// Resize(antialias=True).

#include <cstdint>

#include "tutti/data/images/coded_image.h"

namespace tutti::data {

/// A part of an image, in pixels, whose edges may lie within pixels.
struct ImageBox {
  double top = 0, left = 0, height = 0, width = 0;
};

/// Makes `out` = [3, size.height, size.width] from `box`, in pixels of the whole decoded image. If
/// an output pixel is larger than an input pixel, the triangular filter grows with it. Neighbours
/// outside of `bounds` (in the same pixels, within the decoded region) do not count. Weights are
/// multiples of 1/16384 that add up to 1, and intermediate rows have 6 more bits than pixels: the
/// result is within 1 of PIL's.
void resample(const DecodedImage& image, const ImageBox& box, const ImageWindow& bounds,
              const ImageSize& size, uint8_t* out);

}  // namespace tutti::data
