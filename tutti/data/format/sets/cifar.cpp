#include "tutti/data/format/sets/cifar.h"

#include <fstream>

#include "tutti/base/error.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
const Shape kShape{3, 32, 32};

std::vector<std::string> cifar_classes(const fs::path& directory) {
  const fs::path meta = directory / "batches.meta.txt";
  if (!is_file(meta))
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  std::vector<std::string> names;
  std::ifstream lines(meta);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != 10)
    throw BadFile(
        fmt::format("{}: expected 10 class names, one a line, found {}: correct or remove the file",
                    meta.string(), names.size()));
  return names;
}

StoredImages open_file(const fs::path& path, Classes classes) {
  const FileBytes file = FileBytes::open(path);
  const int64_t size = file.size();
  if (size == 0 || size % kCifarRecordBytes != 0)
    throw BadFile(unreadable(
        file, Content::unknown,
        fmt::format("expected whole records of {} bytes (10000 of them: 30730000 bytes) of "
                    "CIFAR-10's binary version, found {} bytes, which is {} records and {} bytes",
                    kCifarRecordBytes, size, size / kCifarRecordBytes, size % kCifarRecordBytes)));
  StridedBytes labels{.first = 0, .stride = kCifarRecordBytes};
  file.walk(0, [&](auto block, int64_t at) { labels.look(block, at); });
  StoredImages images(kShape, std::move(classes));
  images.append({.pixels = file,
                 .first = 1,
                 .stride = kCifarRecordBytes,
                 .labels = std::move(labels.bytes),
                 .source = path.string()});
  return images;
}

}  // namespace

std::vector<std::string> cifar_files(bool train) {
  if (!train) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
          "data_batch_5.bin"};
}

StoredImages open_cifar_file(const fs::path& file, const ClassLimit& limit) {
  return open_file(file, limited(cifar_classes(file.parent_path()), limit));
}

std::unique_ptr<StoredImages> open_cifar(const fs::path& place, bool train,
                                         const ClassLimit& limit) {
  if (is_file(place)) return std::make_unique<StoredImages>(open_cifar_file(place, limit));
  const Classes classes = limited(cifar_classes(place), limit);
  auto all = std::make_unique<StoredImages>(kShape, classes);
  for (const std::string& name : cifar_files(train)) all->append(open_file(place / name, classes));
  return all;
}

}  // namespace tutti::data
