#pragma once
// Decodes JPEG and PNG files, told apart by their first bytes and not by their names (ImageNet has
// a PNG that is called .JPEG).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// A size in pixels.
struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// The pixels [top, top + height) x [left, left + width) of an image.
struct ImageWindow {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// The result of a decoder: at least the requested window, at `eighths` / 8 of the image's size.
/// Pixel (0, 0) is pixel (top, left) of the whole image at that size, which has `whole` pixels. A
/// pixel has four bytes: red, green, blue and an unused one.
struct DecodedImage {
  int eighths = 8;
  ImageSize whole, size;
  int64_t top = 0, left = 0;
  std::vector<uint8_t> rgbx;
};

/// An image with more pixels is refused: it would take a gigabyte in each reader thread.
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

/// Compare the first bytes. JPEG: FF D8 FF; PNG: its signature.
bool is_jpeg(std::span<const uint8_t> coded);
bool is_png(std::span<const uint8_t> coded);
/// Looks only at the name: .jpg, .jpeg, .png in any case.
bool is_image_name(std::string_view name);

/// Reads only the header. BadFile for a file that is neither JPEG nor PNG, damaged, or too large;
/// the message does not have the file's name.
ImageSize image_size(std::span<const uint8_t> coded, int64_t most_pixels = kMostPixels);

/// Returns the smallest of 1, 2, 4 and 8 eighths (libjpeg-turbo has fast transforms for them) at
/// which `height` x `width` pixels are still at least `least`.
int smallest_scale(double height, double width, const ImageSize& least);

/// Decodes the pixels that cover `window`: a JPEG at `eighths` / 8 of its size, a PNG always whole
/// and at full size. Grey and CMYK become RGB; a PNG loses its transparency, and keeps the upper
/// 8 of 16 bits. BadFile where the data of these pixels end early or are corrupted.
void decode_image(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                  DecodedImage& image);
/// Decodes the whole image at its own size. BadFile that begins with `origin`, the image's place.
void decode_whole(std::span<const uint8_t> coded, const std::string& origin, DecodedImage& image);

// Each of these takes one format.
ImageSize jpeg_size(std::span<const uint8_t> coded);
ImageSize png_size(std::span<const uint8_t> coded);
void decode_jpeg(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                 DecodedImage& image);
void decode_png(std::span<const uint8_t> coded, DecodedImage& image);

}  // namespace tutti::data
