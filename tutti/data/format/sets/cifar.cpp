#include "tutti/data/format/sets/cifar.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
const Shape kShape{3, 32, 32};

constexpr std::string_view kFine =
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus "
    "butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch "
    "crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo "
    "keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse "
    "mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy "
    "porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper "
    "snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television "
    "tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm";
constexpr std::string_view kCoarse =
    "aquatic_mammals fish flowers food_containers fruit_and_vegetables "
    "household_electrical_devices household_furniture insects large_carnivores "
    "large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores "
    "medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1 "
    "vehicles_2";

/// A version of the files: how a record begins, and what its classes are called.
struct Version {
  std::string_view name;     ///< "CIFAR-10's"
  int64_t labels, label;     ///< label bytes before the pixels; the one that counts
  std::string_view classes;  ///< the published names
  std::string_view file;     ///< their file beside the records, one name a line
  int64_t published;         ///< records of a published file

  int64_t record() const { return labels + kCifarRecordBytes - 1; }
};
constexpr Version kCifar10{.name = "CIFAR-10's",
                           .labels = 1,
                           .label = 0,
                           .classes = "airplane automobile bird cat deer dog frog horse ship truck",
                           .file = "batches.meta.txt",
                           .published = 10000};
constexpr Version kCifar100{.name = "CIFAR-100's",
                            .labels = 2,
                            .label = 1,
                            .classes = kFine,
                            .file = "fine_label_names.txt",
                            .published = 50000};
constexpr Version kCifar100Coarse{.name = "CIFAR-100's",
                                  .labels = 2,
                                  .label = 0,
                                  .classes = kCoarse,
                                  .file = "coarse_label_names.txt",
                                  .published = 50000};

std::vector<std::string> cifar_classes(const fs::path& directory, const Version& version) {
  std::istringstream published{std::string(version.classes)};
  const std::vector<std::string> known{std::istream_iterator<std::string>(published), {}};
  const fs::path meta = directory / version.file;
  if (!is_file(meta)) return known;
  std::vector<std::string> names;
  std::ifstream lines(meta);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != known.size())
    throw BadFile("{}: expected {} class names, one a line, found {}: correct or remove the file",
                  meta.string(), known.size(), names.size());
  return names;
}

StoredImages open_file(const fs::path& path, const Version& version, const ClassLimit& limit) {
  const FileBytes file = FileBytes::open(path);
  const int64_t size = file.size(), record = version.record();
  if (size == 0 || size % record != 0)
    throw BadFile(unreadable(
        file, Content::unknown,
        fmt::format("expected whole records of {} bytes ({} of them: {} bytes) of {} binary "
                    "version, found {} bytes, which is {} records and {} bytes",
                    record, version.published, version.published * record, version.name, size,
                    size / record, size % record)));
  StridedBytes labels{.first = version.label, .stride = record};
  file.walk(0, [&](auto block, int64_t at) { labels.look(block, at); });
  StoredImages images(kShape, limited(cifar_classes(path.parent_path(), version), limit));
  images.append({.pixels = file,
                 .first = version.labels,
                 .stride = record,
                 .labels = std::move(labels.bytes),
                 .source = path.string()});
  return images;
}

/// Returns the data set cifar100, or cifar100-coarse of its 20 superclasses.
KnownDataset cifar100(const Version& version, std::string name, std::string classes, int count) {
  return {
      .name = std::move(name),
      .description = "50,000 + 10,000 photographs, 3x32x32, " + classes + " (Krizhevsky 2009)",
      .classes = count,
      .train_files = {"train.bin"},
      .test_files = {"test.bin"},
      .how_to_get =
          "download cifar-100-binary.tar.gz from https://www.cs.toronto.edu/~kriz/cifar.html and "
          "unpack it; the directory is cifar-100-binary",
      .statistics = {.mean = {0.5071f, 0.4865f, 0.4409f}, .deviation = {0.2673f, 0.2564f, 0.2762f}},
      .transforms = {"image: divide 255, normalise"},
      .open_file = [&version](const fs::path& file, const ClassLimit& limit) {
        return open_file(file, version, limit);
      }};
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
           .open_file = open_cifar_file},
          cifar100(kCifar100, "cifar100", "100 classes", 100),
          cifar100(kCifar100Coarse, "cifar100-coarse", "20 classes of five kinds each", 20)};
}

StoredImages open_cifar_file(const fs::path& file, const ClassLimit& limit) {
  return open_file(file, kCifar10, limit);
}

}  // namespace tutti::data
