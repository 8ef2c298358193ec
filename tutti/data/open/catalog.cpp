#include "tutti/data/open/catalog.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/shell.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/format/sets/cifar.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kImage = {"image: divide 255, normalise"};

FieldStatistics images(std::vector<float> mean, std::vector<float> deviation) {
  return {.mean = std::move(mean), .deviation = std::move(deviation)};
}

KnownDataset idx_set(std::string name, std::string description, std::string how_to_get,
                     FieldStatistics statistics) {
  return {.name = std::move(name),
          .description = std::move(description),
          .classes = 10,
          .train_files = {"train-images-idx3-ubyte[.gz]", "train-labels-idx1-ubyte[.gz]"},
          .test_files = {"t10k-images-idx3-ubyte[.gz]", "t10k-labels-idx1-ubyte[.gz]"},
          .how_to_get = std::move(how_to_get),
          .statistics = std::move(statistics),
          .transforms = kImage};
}

/// Adds the files of a set whose parts have a pattern each, their name and `pattern`.
KnownDataset in_parts(const std::string& pattern, KnownDataset set) {
  set.train_files.insert(set.train_files.begin(), "train" + pattern);
  set.validation_files = {"validation" + pattern};
  set.test_files = {"test" + pattern};
  set.test_files_may_lack = true;
  return set;
}

bool is_digit(char c) { return '0' <= c && c <= '9'; }

/// Says whether the name equals `pattern` except for digits.
bool differs_in_digits(std::string_view name, std::string_view pattern) {
  return std::ranges::equal(name, pattern,
                            [](char a, char b) { return a == b || (is_digit(a) && is_digit(b)); });
}

/// Says whether the folder has a sample that was not generated.
bool holds_downloaded(const KnownDataset& known, const fs::path& folder) {
  if (known.generated_file.empty()) return false;
  const fs::path ending = fs::path(known.generated_file).extension();
  const bool images = known.name == "imagenet";  // in class folders, with any ending
  std::error_code unknown;
  for (const char* part : {"train", "validation", "test"})
    for (const auto& entry : fs::recursive_directory_iterator(
             folder / part, fs::directory_options::skip_permission_denied, unknown)) {
      const std::string name = entry.path().filename().string();
      if ((images ? entry.path().parent_path() != folder / part && is_file(entry.path())
                  : name.find(ending.string()) != name.npos) &&
          !name.starts_with('.') && !differs_in_digits(name, known.generated_file))
        return true;
    }
  return false;
}

std::vector<KnownDataset> all_sets() {
  std::vector<KnownDataset> sets = cifar_datasets();
  const std::vector<KnownDataset> others = {
      idx_set(
          "mnist",
          "60,000 + 10,000 handwritten digits, 1x28x28, 10 classes (LeCun, Cortes, Burges 1998)",
          "download the four .gz files of http://yann.lecun.com/exdb/mnist/ or one of its mirrors "
          "into one directory; unpacking is not needed",
          images({0.1307f}, {0.3081f})),
      idx_set(
          "fashion-mnist",
          "60,000 + 10,000 pictures of clothes, 1x28x28, 10 classes (Xiao, Rasul, Vollgraf 2017)",
          "download the four .gz files of https://github.com/zalandoresearch/fashion-mnist "
          "(data/fashion) into one directory; unpacking is not needed",
          images({0.2860f}, {0.3530f})),
      {.name = "lattices",
       .description = "any number of simulated microscopy images of the five 2-D Bravais lattices, "
                      "1x64x64, 5 classes",
       .classes = 5,
       .train_files = {"lattices-train.bin"},
       .test_files = {"lattices-test.bin"},
       .how_to_get = "run 'tutti data generate lattices FOLDER', or give no directory: then the "
                     "images are generated in memory",
       .statistics = images({0.2398f}, {0.1710f}),
       .transforms = kImage,
       .can_be_generated = true},
      in_parts("/*.tfrecord",
               {.name = "cosmoflow",
                .description = "MLPerf HPC's CosmoFlow: volumes of dark matter at four times, x "
                               "i16 [S, S, S, 4], and the four numbers of their universe, y f32 "
                               "[4]; one TFRecord a sample, plain or gzip",
                .how_to_get = "generate it ('tutti data generate cosmoflow FOLDER' and flags for "
                              "its size), or see https://portal.nersc.gov/project/m3363/",
                .transforms = {"x: permute 3 0 1 2, log1p"},
                .can_be_generated = true,
                .published = "https://portal.nersc.gov/project/m3363/",
                .generated_file = "univ_00000000.tfrecord"}),
      in_parts("/*.h5",
               {.name = "deepcam",
                .description =
                    "MLPerf HPC's DeepCAM: 16 fields of an atmosphere, data f32 [H, W, 16], and "
                    "the classes of its cells, labels [H, W]; one HDF5 file a sample, and stats.h5",
                .classes = 3,
                .train_files = {"stats.h5"},
                .how_to_get = "generate it ('tutti data generate deepcam FOLDER' and flags for its "
                              "size), or see https://github.com/mlcommons/hpc",
                .transforms = {"data: permute 2 0 1, min-max"},
                .can_be_generated = true,
                .published = "https://github.com/mlcommons/hpc",
                .generated_file = "data-00000000.h5"}),
      in_parts(
          "/*/*.jpg",
          {.name = "imagenet",
           .description =
               "photographs of any size, JPEG and PNG, in class folders or tar shards: ImageNet's "
               "1,281,167 + 50,000 of 1000 classes (Russakovsky et al. 2015), or your own",
           .how_to_get = "sort images into folders train/CLASS and validation/CLASS (ImageNet's: "
                         "see https://image-net.org/download.php), or make pictures ('tutti data "
                         "generate imagenet FOLDER' and flags for their size)",
           .statistics = images({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}),
           .transforms = {"image: resized-crop 224, flip x, divide 255, normalise"},
           .can_be_generated = true,
           .published = "https://image-net.org/download.php",
           .generated_file = "img_00000000.jpg"}),
      in_parts(
          "/*.h5",
          {.name = "neurons",
           .description = "volumes of neurons: the image, raw [Z, Y, X], and the number of the "
                          "object of each voxel, labels [Z, Y, X]; HDF5, npz or any array file",
           .how_to_get = "generate it ('tutti data generate neurons FOLDER'), or name files of "
                         "your own in data.train_files and data.validation_files",
           .transforms = {"image: symmetries x y z, normalise mean 128 std 33",
                          "label: symmetries x y z, multiply 0.9, add 0.05",
                          "seed: symmetries x y z"},
           .can_be_generated = true,
           .generated_file = "volume-000.h5"}),
      in_parts(
          "/*.h5",
          {.name = "cbed",
           .description =
               "electron diffraction: simulated patterns of a focused probe on crystals, image f16 "
               "[1, S, S], with the class of nine structures, parameters f32 [4] (two tilts, "
               "thickness, strain) and the potential f16 [1, S, S]",
           .classes = 9,
           .how_to_get = "generate it ('tutti data generate cbed FOLDER' and flags for its optics)",
           .transforms = {"image: log1p"},
           .can_be_generated = true}),
      in_parts(
          "/*.h5",
          {.name = "stem",
           .description = "electron microscopy: simulated dark-field images of crystals' columns "
                          "of atoms, image f16 [1, S, S], with the class of ten structures, the "
                          "mask columns u8 [S, S] and the image without noise, clean f16 [1, S, S]",
           .classes = 10,
           .how_to_get = "generate it ('tutti data generate stem FOLDER' and flags for its optics)",
           .can_be_generated = true}),
      in_parts(
          "/*.txt",
          {.name = "clicks",
           .description = "click logs as text: numbers, categories by the rows of their tables, "
                          "and whether it was clicked; Criteo's (Kaggle and day files) and Avazu's",
           .how_to_get = "generate it ('tutti data generate clicks FOLDER'), or name logs of your "
                         "own, unpacked, in data.train_files and data.validation_files",
           .transforms = {"dense: clip 0 1e9, log1p"},
           .can_be_generated = true,
           .generated_file = "clicks-00000.txt"}),
      in_parts("*.txt",
               {.name = "text",
                .description = "text files, UTF-8 or any bytes, by characters or bytes: windows of "
                               "tokens, tokens i32 [T], and what follows each, next i32 [T]",
                .how_to_get = "write it ('tutti data generate text FOLDER'), or name files of your "
                              "own, unpacked, in data.train_files",
                .can_be_generated = true}),
      in_parts("-*.tokens",
               {.name = "tokens",
                .description = "token files that 'tutti data tokenize' has written, in the same "
                               "windows; with documents also segments i32 [T]",
                .how_to_get = "make them of texts with 'tutti data tokenize TEXT --to FOLDER'"}),
      {.name = "token-pairs",
       .description = "documents of two texts as token files, one to be made from the other: "
                      "source i32 [T], tokens i32 [T] and next i32 [T], -1 behind their ends",
       .train_files = {"source/train-*.tokens", "target/train-*.tokens"},
       .validation_files = {"source/validation-*.tokens", "target/validation-*.tokens"},
       .test_files = {"source/test-*.tokens", "target/test-*.tokens"},
       .test_files_may_lack = true,
       .how_to_get = "generate it ('tutti data generate token-pairs FOLDER'), or make both of "
                     "texts with as many documents: 'tutti data tokenize TEXT --separator WORD "
                     "--to FOLDER/source', and FOLDER/target",
       .can_be_generated = true},
      {.name = "arrays",
       .description = "files of your own: NumPy, HDF5, NetCDF, TIFF, TFRecord, raw arrays; "
                      "data.fields says what a sample is",
       .train_files = {"data.train_files"},
       .test_files = {"data.validation_files", "data.test_files"},
       .how_to_get =
           "'tutti data inspect PATH' shows what is in them and a configuration to start from"},
  };
  sets.insert(sets.end(), others.begin(), others.end());
  return sets;
}

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> sets = all_sets();
  return sets;
}

const KnownDataset& known_dataset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const KnownDataset& set : known_datasets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw ConfigError(
      fmt::format("data set '{}' is not known; known are {}", name, fmt::join(names, ", ")));
}

std::vector<std::string> spellings_of(std::string file) {
  if (constexpr std::string_view kEither = "[.gz]"; file.ends_with(kEither))
    file.resize(file.size() - kEither.size());
  std::vector<std::string> names = {file};
  if (const size_t dash = file.find("-idx"); dash != file.npos)
    names.push_back(file.replace(dash, 1, "."));
  for (size_t i = 0, plain = names.size(); i < plain; ++i) names.push_back(names[i] + ".gz");
  return names;
}

std::vector<std::string> generated_sets() {
  std::vector<std::string> names;
  for (const KnownDataset& set : known_datasets())
    if (set.can_be_generated) names.push_back(set.name);
  for (const char* own : {"protein", "vibrations"}) names.emplace_back(own);  // read as arrays
  return names;
}

std::string names_of_generated() {
  std::vector<std::string> names = generated_sets();
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string how_to_get(const KnownDataset& known, const fs::path& dir) {
  constexpr std::string_view kFolder = "FOLDER";
  std::string text = known.how_to_get;
  const size_t at = text.find(kFolder);
  if (at == std::string::npos) return text;
  const fs::path folder = is_file(dir) ? dir.parent_path() : dir;
  if (holds_downloaded(known, folder))
    return fmt::format("fetch what is missing or damaged (published: {})", known.published);
  std::string command = shell_word(folder.empty() ? "." : folder.string());
  const auto lies_there = [&](const std::string& file) {  // with a *: its folder exists
    const fs::path path = folder / file;
    std::error_code unknown;  // a more specific error is being reported
    return fs::exists(file.find('*') == file.npos ? path : path.parent_path(), unknown);
  };
  if (std::ranges::any_of(known.train_files, lies_there) ||
      std::ranges::any_of(known.validation_files, lies_there) ||
      std::ranges::any_of(known.test_files, lies_there))
    command += " --force";
  return text.replace(at, kFolder.size(), command);
}

}  // namespace tutti::data
