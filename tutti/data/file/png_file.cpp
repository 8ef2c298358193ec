#include "tutti/data/file/png_file.h"

#include <zlib.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"

namespace tutti::data {
namespace {

std::string big_endian_bytes(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

/// Returns length, type, data, and the checksum of type and data.
std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string checked = type + data;
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return big_endian_bytes(static_cast<uint32_t>(data.size())) + checked +
         big_endian_bytes(static_cast<uint32_t>(sum));
}

}  // namespace

void write_png(const std::filesystem::path& path, int64_t width, int64_t height,
               std::span<const uint8_t> rgb) {
  CHECK(width > 0 && height > 0 && std::ssize(rgb) == width * height * 3,
        "{} bytes for {} x {} pixels", rgb.size(), width, height);
  std::vector<uint8_t> rows;  // each begins with its filter: 2, the difference from the row above
  for (int64_t y = 0; y < height; ++y) {
    rows.push_back(2);
    for (int64_t i = y * width * 3; i < (y + 1) * width * 3; ++i)
      rows.push_back(static_cast<uint8_t>(rgb[static_cast<size_t>(i)] -
                                          (y > 0 ? rgb[static_cast<size_t>(i - width * 3)] : 0)));
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  CHECK(compress2(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(), rows.size(), 9) ==
            Z_OK,
        "zlib cannot compress");
  packed.resize(size);
  std::string header = big_endian_bytes(static_cast<uint32_t>(width)) +
                       big_endian_bytes(static_cast<uint32_t>(height));
  header +=
      std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB, deflate, filters, not interlaced
  auto file = output_stream(path);
  errno = 0;
  file << "\x89PNG\r\n\x1a\n"
       << png_chunk("IHDR", header) << png_chunk("IDAT", packed) << png_chunk("IEND", "")
       << std::flush;
  if (!file)
    throw IoError(fmt::format("{}: cannot be written: {}", path.string(), file_error(errno)));
}

}  // namespace tutti::data
