#include "tutti/train/npy.h"

#include <string>

#include "tutti/train/durable_file.h"

namespace tutti {

void write_npy(const std::filesystem::path& path, const Shape& shape,
               std::span<const float> values) {
  CHECK(static_cast<size_t>(shape.elements()) == values.size(), "{} holds {} values",
        shape.to_string(), values.size());
  std::string extents;
  for (const int64_t extent : shape) extents += fmt::format("{},", extent);
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", extents);
  constexpr size_t kBefore = 10;  // magic, version, length
  header.resize((header.size() + 1 + kBefore + 63) / 64 * 64 - kBefore - 1,
                ' ');  // the data begin at a multiple of 64
  header += '\n';

  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);
  DurableFile file(path);
  file.write(start);
  file.write(header);
  file.write(std::as_bytes(values));
  file.close();
}

}  // namespace tutti
