// Decodes JPEG by libjpeg-turbo. Its errors return through setjmp: code between a setjmp and a
// longjmp has no destructors here, so none is skipped.

#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <string>

#include "tutti/data/images/coded_image.h"

namespace tutti::data {
namespace {

/// A progressive image with more scans is made to waste time.
constexpr int kMostScans = 500;
/// Pixels decoded around a window, so that the smooth upsampling of colours at its edges sees the
/// same neighbours as in the whole image.
constexpr int64_t kMargin = 2;

struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = {};
  bool damaged = false;
};

JpegErrors& errors_of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

[[noreturn]] void leave(j_common_ptr info) {
  JpegErrors& errors = errors_of(info);
  info->err->format_message(info, errors.message);
  std::longjmp(errors.back, 1);
}

/// Ends the decoding on warnings that pixels are missing or wrong; the others (bytes between
/// segments, an odd version) are common in photographs and harmless.
void hear(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION: errors_of(info).damaged = true; leave(info);
    default: ++info->err->num_warnings;
  }
}

void stay_silent(j_common_ptr) {}

void count_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) {
    std::snprintf(errors_of(info).message, JMSG_LENGTH_MAX, "more than %d scans", kMostScans);
    std::longjmp(errors_of(info).back, 1);
  }
}

class JpegDecoder {
 public:
  explicit JpegDecoder(std::span<const uint8_t> coded) : JpegDecoder() {
    require(read_header(coded.data(), static_cast<unsigned long>(coded.size())));
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageSize size() const { return {info_.image_height, info_.image_width}; }
  void decode(const ImageWindow& window, int eighths, DecodedImage& image) {
    info_.scale_num = static_cast<unsigned>(eighths);
    info_.scale_denom = 8;
    const bool four_inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four_inks ? JCS_CMYK : JCS_EXT_RGBX;
    info_.dct_method = JDCT_ISLOW;
    require(start());
    image.eighths = eighths;
    image.whole = {info_.output_height, info_.output_width};
    crop(window, eighths, image);
    image.rgbx.resize(static_cast<size_t>(image.size.height * image.size.width) * 4);
    require(read_rows(image.rgbx.data(), static_cast<size_t>(image.size.width) * 4,
                      static_cast<unsigned>(image.size.height)));
    if (four_inks) make_rgb(image.rgbx);
  }

 private:
  /// A constructor of its own: whatever the header holds, the destructor runs.
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = leave;
    errors_.manager.emit_message = hear;
    errors_.manager.output_message = stay_silent;
    progress_.progress_monitor = count_scans;
    require(create());
    info_.progress = &progress_;
  }

  void require(bool done) const {
    if (!done)
      throw BadFile(std::string(errors_.damaged ? "is truncated or corrupted: "
                                                : "is no JPEG that can be read: ") +
                    errors_.message);
  }

  // Each of these sets its own jump target, and has only plain values.
  bool create() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&info_);
    return true;
  }
  bool read_header(const uint8_t* bytes, unsigned long count) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_mem_src(&info_, bytes, count);
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  bool start() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&info_);
    return true;
  }
  bool crop_columns(JDIMENSION* left, JDIMENSION* width) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_crop_scanline(&info_, left, width);
    return true;
  }
  bool skip_rows(JDIMENSION count) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_skip_scanlines(&info_, count);
    return true;
  }
  bool read_rows(uint8_t* out, size_t stride, JDIMENSION count) {
    if (setjmp(errors_.back) != 0) return false;
    const JDIMENSION first = info_.output_scanline;
    while (info_.output_scanline < first + count) {
      JSAMPROW row = out + (info_.output_scanline - first) * stride;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    return true;
  }

  /// Decoding begins at the column of a block; rows above are skipped, rows below are never
  /// decoded.
  void crop(const ImageWindow& window, int eighths, DecodedImage& image) {
    const auto along = [&](int64_t first, int64_t count, int64_t whole) {
      const int64_t begin = std::clamp<int64_t>(first * eighths / 8 - kMargin, 0, whole - 1);
      const int64_t end =
          std::clamp<int64_t>(((first + count) * eighths + 7) / 8 + kMargin, begin + 1, whole);
      return std::pair(begin, end - begin);
    };
    const auto [top, height] = along(window.top, window.height, image.whole.height);
    const auto [column, columns] = along(window.left, window.width, image.whole.width);
    auto left = static_cast<JDIMENSION>(column), width = static_cast<JDIMENSION>(columns);
    if (columns < image.whole.width) require(crop_columns(&left, &width));
    if (top > 0) require(skip_rows(static_cast<JDIMENSION>(top)));
    image.top = top;
    image.left = left;
    image.size = {height, width};
  }

  /// Converts CMYK. Adobe's programs store inks inverted, as PIL and browsers assume.
  void make_rgb(std::vector<uint8_t>& inks) const {
    const int inverted = info_.saw_Adobe_marker ? 0 : 255;
    for (size_t i = 0; i + 3 < inks.size(); i += 4) {
      const int black = inks[i + 3] ^ inverted;
      for (size_t c = 0; c < 3; ++c)
        inks[i + c] = static_cast<uint8_t>(((inks[i + c] ^ inverted) * black + 127) / 255);
    }
  }

  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  JpegErrors errors_;
};

}  // namespace

ImageSize jpeg_size(std::span<const uint8_t> coded) { return JpegDecoder(coded).size(); }

void decode_jpeg(std::span<const uint8_t> coded, const ImageWindow& window, int eighths,
                 DecodedImage& image) {
  JpegDecoder(coded).decode(window, eighths, image);
}

}  // namespace tutti::data
