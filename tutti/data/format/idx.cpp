#include "tutti/data/format/idx.h"

#include <fmt/ranges.h>

#include "tutti/base/error.h"
#include "tutti/data/format/stored_images.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

fs::path plain_or_gz(const fs::path& plain) {
  fs::path packed = plain;
  packed += ".gz";
  return !fs::exists(plain) && fs::exists(packed) ? packed : plain;
}

}  // namespace

IdxArray read_idx(const fs::path& path, int rank) {
  FileBytes file = path.extension() == ".gz" ? FileBytes::inflate(path) : FileBytes::map(path);
  const auto bytes = file.bytes();
  const auto header = static_cast<size_t>(4 + 4 * rank);
  const uint32_t expected = 0x800u + static_cast<uint32_t>(rank);
  if (bytes.size() < header)
    throw IoError(fmt::format(
        "{}: truncated: expected an IDX header of {} bytes, found {} bytes: fetch the file again",
        path.string(), header, bytes.size()));
  if (const uint32_t magic = big_endian(bytes.data()); magic != expected)
    throw IoError(
        fmt::format("{}: expected IDX magic {:#010x} (bytes with {} extents), found {:#010x}: the "
                    "file is corrupted, or images and "
                    "labels are exchanged; fetch it again",
                    path.string(), expected, rank, magic));
  IdxArray array{{}, bytes.subspan(header), std::move(file)};
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    const int64_t extent = big_endian(bytes.data() + 4 + 4 * i);
    array.extents.push_back(extent);
    if (extent == 0 || __builtin_mul_overflow(elements, extent, &elements))
      throw IoError(fmt::format("{}: corrupted: extent {} of {} is {}: fetch the file again",
                                path.string(), i + 1, rank, extent));
  }
  if (elements != std::ssize(array.data))
    throw IoError(
        fmt::format("{}: expected {} = {} bytes of data after the header, found {}: the file is "
                    "truncated or corrupted; fetch it again",
                    path.string(), fmt::join(array.extents, " x "), elements, array.data.size()));
  return array;
}

IdxFiles idx_files(const fs::path& directory, bool train) {
  const std::string prefix = train ? "train" : "t10k";
  return {plain_or_gz(directory / (prefix + "-images-idx3-ubyte")),
          plain_or_gz(directory / (prefix + "-labels-idx1-ubyte"))};
}

std::unique_ptr<Dataset> open_idx(const fs::path& directory, bool train,
                                  std::vector<std::string> class_names) {
  const IdxFiles files = idx_files(directory, train);
  IdxArray images = read_idx(files.images, 3), labels = read_idx(files.labels, 1);
  if (images.extents[0] != labels.extents[0])
    throw IoError(fmt::format(
        "{} has {} images but {} has {} labels: the files do not belong together",
        files.images.string(), images.extents[0], files.labels.string(), labels.extents[0]));
  const ImageShape shape{1, static_cast<int>(images.extents[1]),
                         static_cast<int>(images.extents[2])};
  const StoredImages::Segment segment{.pixels = images.data.data(),
                                      .pixel_stride = shape.pixels(),
                                      .labels = labels.data.data(),
                                      .label_stride = 1,
                                      .count = images.extents[0],
                                      .source = files.labels.string()};
  std::vector<FileBytes> bytes;
  bytes.push_back(std::move(images.file));
  bytes.push_back(std::move(labels.file));
  auto set = std::make_unique<StoredImages>(shape, std::move(class_names));
  set->append(segment, std::move(bytes));
  return set;
}

}  // namespace tutti::data
