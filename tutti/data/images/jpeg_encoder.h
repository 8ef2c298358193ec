#pragma once
// encode_jpeg writes pixels to a JPEG in memory, for generated data sets and tests.

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/data/images/coded_image.h"

namespace tutti::data {

struct JpegOptions {
  int quality = 90;          ///< 1 to 100, libjpeg's scale
  bool progressive = false;  ///< use several scans
};

/// `pixels`: [height, width, channels] with 1 (grey), 3 (RGB) or 4 channels (CMYK as Adobe stores
/// it, inverted).
std::vector<uint8_t> encode_jpeg(std::span<const uint8_t> pixels, const ImageSize& size,
                                 int channels, const JpegOptions& options = {});

}  // namespace tutti::data
