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

std::vector<KnownDataset> cifar_datasets() {
  return {{.name = "cifar10",
           .description = "50,000 + 10,000 photographs, 3x32x32, 10 classes (Krizhevsky 2009)",
           .classes = 10,
           .train_files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "data_batch_5.bin"},
           .test_files = {"test_batch.bin"},
           .how_to_get = "download cifar-10-binary.tar.gz from "
                         "https://www.cs.toronto.edu/~kriz/cifar.html and unpack it; the directory "
                         "is cifar-10-batches-bin",
           .statistics = {.mean = {0.4914f, 0.4822f, 0.4465f},
                          .deviation = {0.2470f, 0.2435f, 0.2616f}},
           .transforms = {"image: divide 255, normalise"},
           .open_file = open_cifar_file}};
}

StoredImages open_cifar_file(const fs::path& file, const ClassLimit& limit) {
  return open_file(file, limited(cifar_classes(file.parent_path()), limit));
}

}  // namespace tutti::data
