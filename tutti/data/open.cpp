#include "tutti/data/open.h"

#include "tutti/base/error.h"
#include "tutti/data/format/catalog.h"
#include "tutti/data/format/cifar.h"
#include "tutti/data/format/idx.h"
#include "tutti/data/format/lattices_file.h"
#include "tutti/data/generate/lattices.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> idx_class_names(const std::string& name) {
  if (name == "mnist") return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

std::unique_ptr<Dataset> generate(const DatasetSpec& spec, bool train) {
  if (spec.count < 0 || spec.threads < 1)
    throw ConfigError(
        fmt::format("lattices: {} images on {} threads: give a positive number of each", spec.count,
                    spec.threads));
  const int64_t count = spec.count > 0 ? spec.count : train ? 10'000 : 2'000;
  return lattices_in_memory(
      {.seed = spec.seed, .first = train ? 0 : kFirstTestLattice, .count = count}, spec.threads);
}

std::unique_ptr<Dataset> open_checked(const DatasetSpec& spec, bool train) {
  if (spec.name == "cifar10") return open_cifar(spec.dir, train);
  if (spec.name != "lattices") return open_idx(spec.dir, train, idx_class_names(spec.name));
  if (fs::is_regular_file(spec.dir)) return open_lattices_file(spec.dir);
  return open_lattices_file(spec.dir / (train ? "lattices-train.bin" : "lattices-test.bin"));
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec) {
  const KnownDataset& known = known_dataset(spec.name);
  if (spec.split != "train" && spec.split != "test")
    throw ConfigError(
        fmt::format("split '{}' of {} is not one of train, test", spec.split, spec.name));
  const bool train = spec.split == "train";
  if (spec.dir.empty()) {
    if (spec.name == "lattices") return generate(spec, train);
    throw ConfigError(fmt::format("{} needs the directory of its files; to get them, {}", spec.name,
                                  known.how_to_get));
  }
  if (!fs::exists(spec.dir))
    throw IoError(fmt::format("{}: {} does not exist; correct the directory, or {}", spec.name,
                              spec.dir.string(), known.how_to_get));
  try {
    return open_checked(spec, train);
  } catch (const IoError& error) {
    throw IoError(fmt::format("{} ({}): {}; to get the files, {}", spec.name, spec.split,
                              error.what(), known.how_to_get));
  }
}

}  // namespace tutti::data
