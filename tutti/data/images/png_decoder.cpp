// Decodes PNG by libpng. Its errors return through setjmp, as libjpeg's do (jpeg_decoder.cpp).

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tutti/data/images/coded_image.h"

namespace tutti::data {
namespace {

constexpr size_t kPngMessage = 160;

struct PngInput {
  const uint8_t* next;
  size_t left;
};

void give_bytes(png_structp png, png_bytep out, size_t count) {
  PngInput& input = *static_cast<PngInput*>(png_get_io_ptr(png));
  if (count > input.left) png_error(png, "the data end early");
  std::memcpy(out, input.next, count);
  input.next += count;
  input.left -= count;
}

[[noreturn]] void keep_message(png_structp png, png_const_charp message) {
  std::snprintf(static_cast<char*>(png_get_error_ptr(png)), kPngMessage, "%s", message);
  png_longjmp(png, 1);
}

void drop_warning(png_structp, png_const_charp) {}

class PngDecoder {
 public:
  explicit PngDecoder(std::span<const uint8_t> coded) : input_{coded.data(), coded.size()} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, message_, keep_message, drop_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr || !read_header()) fail();
  }
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageSize size() const {
    return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)};
  }

  void decode(DecodedImage& image) {
    image.eighths = 8;
    image.top = image.left = 0;
    image.size = image.whole = size();
    image.rgbx.resize(static_cast<size_t>(image.size.height * image.size.width) * 4);
    rows_.resize(static_cast<size_t>(image.size.height));
    for (size_t y = 0; y < rows_.size(); ++y)
      rows_[y] = image.rgbx.data() + y * static_cast<size_t>(image.size.width) * 4;
    if (!read_pixels(static_cast<size_t>(image.size.width) * 4)) fail();
  }

 private:
  [[noreturn]] void fail() {
    const std::string why = std::string("is truncated or corrupted: ") + message_;
    png_destroy_read_struct(&png_, &info_, nullptr);
    throw BadFile(why);
  }

  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_read_fn(png_, &input_, give_bytes);
    png_read_info(png_, info_);
    return true;
  }

  /// Reads any kind (palette, grey, 1 to 16 bits, transparent, interlaced) as four bytes per pixel.
  bool read_pixels(size_t row_bytes) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_add_alpha(png_, 255, PNG_FILLER_AFTER);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "rows of an odd length");
    png_read_image(png_, rows_.data());
    png_read_end(png_, nullptr);
    return true;
  }

  PngInput input_;
  char message_[kPngMessage] = {};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::vector<png_bytep> rows_;
};

}  // namespace

ImageSize png_size(std::span<const uint8_t> coded) { return PngDecoder(coded).size(); }

void decode_png(std::span<const uint8_t> coded, DecodedImage& image) {
  PngDecoder(coded).decode(image);
}

}  // namespace tutti::data
