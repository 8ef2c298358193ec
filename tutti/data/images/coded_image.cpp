#include "tutti/data/images/coded_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "tutti/base/error.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr std::array<uint8_t, 3> kJpegStart = {0xFF, 0xD8, 0xFF};
constexpr std::array<uint8_t, 8> kPngStart = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <size_t N>
bool starts_with(std::span<const uint8_t> coded, const std::array<uint8_t, N>& start) {
  return coded.size() >= N && std::equal(start.begin(), start.end(), coded.begin());
}

}  // namespace

bool is_jpeg(std::span<const uint8_t> coded) { return starts_with(coded, kJpegStart); }
bool is_png(std::span<const uint8_t> coded) { return starts_with(coded, kPngStart); }

bool is_image_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

ImageSize image_size(std::span<const uint8_t> coded, int64_t most_pixels) {
  if (coded.empty()) throw BadFile("is empty");
  if (!is_jpeg(coded) && !is_png(coded)) {
    const FirstBytes found = first_bytes_of(coded, std::ssize(coded));
    throw BadFile(
        found.content == Content::unknown
            ? std::string("is neither a JPEG nor a PNG")
            : fmt::format("is neither a JPEG nor a PNG, but {}: {}", found.name, found.remedy));
  }
  const ImageSize size = is_jpeg(coded) ? jpeg_size(coded) : png_size(coded);
  if (size.width < 1 || size.height < 1) throw BadFile("has no pixels");
  if (size.width > most_pixels / size.height)
    throw BadFile("has {} x {} pixels, more than the {} that are read", size.width, size.height,
                  most_pixels);
  return size;
}

int smallest_scale(double height, double width, const ImageSize& least) {
  for (const int eighths : {1, 2, 4})
    if (width * eighths >= static_cast<double>(least.width * 8) &&
        height * eighths >= static_cast<double>(least.height * 8))
      return eighths;
  return 8;
}

void decode_image(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                  DecodedImage& image) {
  CHECK(window.width > 0 && window.height > 0 && window.top >= 0 && window.left >= 0,
        "a window of {} x {} pixels", window.width, window.height);
  if (is_jpeg(coded))
    decode_jpeg(coded, window, eighths, image);
  else
    decode_png(coded, image);
}

void decode_whole(std::span<const uint8_t> coded, const std::string& origin, DecodedImage& image) {
  try {
    const ImageSize size = image_size(coded);
    decode_image(coded, {0, 0, size.height, size.width}, 8, image);
  } catch (const BadFile& error) {
    throw BadFile("{} {}", origin, error.what());
  }
}

}  // namespace tutti::data
