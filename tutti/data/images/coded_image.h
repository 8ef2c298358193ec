#pragma once
// Coded images: JPEG and PNG as they lie in files, told apart by their first bytes and not by their
// names (ImageNet has a PNG that is called .JPEG).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

/// In pixels.
struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Pixels [top, top + height) x [left, left + width) of an image.
struct ImageWindow {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// What a decoder made: at least the window that was asked for, at `eighths` / 8 of the image's
/// size. Pixel (0, 0) is pixel (top, left) of the whole image at that size, which has `whole`
/// pixels. Four bytes a pixel: red, green, blue and one without a meaning.
struct DecodedImage {
  int eighths = 8;
  ImageSize whole, size;
  int64_t top = 0, left = 0;
  std::vector<uint8_t> rgbx;
};

/// An image of more pixels is refused: it would take a gigabyte of each reader thread.
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

/// JPEG: FF D8 FF; PNG: its signature.
bool is_jpeg(std::span<const uint8_t> coded);
bool is_png(std::span<const uint8_t> coded);
/// By the name alone: .jpg, .jpeg, .png in any case.
bool is_image_name(std::string_view name);

/// Of the header alone. BadFile for what is neither JPEG nor PNG, damaged, or too large; the
/// message does not know the file's name.
ImageSize image_size(std::span<const uint8_t> coded, int64_t most_pixels = kMostPixels);

/// The smallest of 1, 2, 4 and 8 eighths (the scales that libjpeg-turbo has fast transforms for) at
/// which `height` x `width` pixels are still at least as many as `least`.
int smallest_scale(double height, double width, const ImageSize& least);

/// Decodes what covers `window`, a JPEG at `eighths` / 8 of its size, a PNG always as a whole and
/// at its size. Grey and CMYK become RGB; transparency of a PNG is dropped, and the upper 8 of 16
/// bits are kept. BadFile where the data of these pixels end early or are corrupted.
void decode_image(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                  DecodedImage& image);
/// All of it, at its own size. BadFile that begins with `origin`, where the image lies.
void decode_whole(std::span<const uint8_t> coded, const std::string& origin, DecodedImage& image);

// Of one format each.
ImageSize jpeg_size(std::span<const uint8_t> coded);
ImageSize png_size(std::span<const uint8_t> coded);
void decode_jpeg(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                 DecodedImage& image);
void decode_png(std::span<const uint8_t> coded, DecodedImage& image);

}  // namespace tutti::data
