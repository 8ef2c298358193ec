#include "tutti/data/images/jpeg_encoder.h"

#include <cstdio>  // jpeglib.h needs it first

#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

struct EncoderErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void leave_encoder(j_common_ptr info) {
  auto& errors = *reinterpret_cast<EncoderErrors*>(info->err);
  info->err->format_message(info, errors.message);
  std::longjmp(errors.back, 1);
}

/// The bytes written so far, which libjpeg allocates.
struct EncodedBytes {
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
};

/// Has only plain values: nothing has a destructor between setjmp and longjmp.
bool encode(jpeg_compress_struct& info, EncoderErrors& errors, const uint8_t* pixels,
            const ImageSize& size, int channels, const JpegOptions& options, EncodedBytes& out) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_compress(&info);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_mem_dest(&info, &out.bytes, &out.count);
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  const size_t stride = size_t{info.image_width} * static_cast<size_t>(info.input_components);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + info.next_scanline * stride);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::vector<uint8_t> encode_jpeg(std::span<const uint8_t> pixels, const ImageSize& size,
                                 int channels, const JpegOptions& options) {
  CHECK((channels == 1 || channels == 3 || channels == 4) &&
            std::ssize(pixels) == size.height * size.width * channels,
        "{} bytes for {} x {} pixels of {} channels", pixels.size(), size.height, size.width,
        channels);
  jpeg_compress_struct info{};
  EncoderErrors errors;
  EncodedBytes out;
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_encoder;
  const bool done = encode(info, errors, pixels.data(), size, channels, options, out);
  std::vector<uint8_t> coded(out.bytes, out.bytes + (done ? out.count : 0));
  jpeg_destroy_compress(&info);
  std::free(out.bytes);
  if (!done) throw Error(fmt::format("a JPEG cannot be written: {}", errors.message));
  return coded;
}

}  // namespace tutti::data
