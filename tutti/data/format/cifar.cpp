#include "tutti/data/format/cifar.h"

#include <fstream>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
constexpr ImageShape kShape{3, 32, 32};

std::vector<std::string> class_names(const fs::path& directory) {
  const fs::path meta = directory / "batches.meta.txt";
  if (!fs::exists(meta))
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  std::vector<std::string> names;
  std::ifstream lines(meta);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != 10)
    throw IoError(
        fmt::format("{}: expected 10 class names, one a line, found {}: correct or remove the file",
                    meta.string(), names.size()));
  return names;
}

StoredImages open_file(const fs::path& path, std::vector<std::string> names) {
  FileBytes file = FileBytes::map(path);
  const auto bytes = file.bytes();
  const auto size = std::ssize(bytes);
  if (size == 0 || size % kCifarRecordBytes != 0)
    throw IoError(fmt::format(
        "{}: expected whole records of {} bytes (10000 of them: 30730000 bytes), found {} bytes, "
        "which is {} records "
        "and {} bytes: the file is truncated or not CIFAR-10's binary version; fetch it again",
        path.string(), kCifarRecordBytes, size, size / kCifarRecordBytes,
        size % kCifarRecordBytes));
  StoredImages images(kShape, std::move(names));
  images.append({.pixels = bytes.data() + 1,
                 .pixel_stride = kCifarRecordBytes,
                 .labels = bytes.data(),
                 .label_stride = kCifarRecordBytes,
                 .count = size / kCifarRecordBytes,
                 .source = path.string()},
                std::move(file));
  return images;
}

}  // namespace

std::vector<std::string> cifar_files(bool train) {
  if (!train) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin"};
}

StoredImages open_cifar_file(const fs::path& file) {
  return open_file(file, class_names(file.parent_path()));
}

std::unique_ptr<Dataset> open_cifar(const fs::path& place, bool train) {
  if (fs::is_regular_file(place)) return std::make_unique<StoredImages>(open_cifar_file(place));
  auto all = std::make_unique<StoredImages>(kShape, class_names(place));
  for (const std::string& name : cifar_files(train))
    all->append(open_file(place / name, all->class_names()));
  return all;
}

}  // namespace tutti::data
