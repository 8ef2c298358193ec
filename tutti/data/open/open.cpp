#include "tutti/data/open/open.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/data/arrays/array_set.h"
#include "tutti/data/arrays/npy_folders.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/array/raw_arrays.h"
#include "tutti/data/format/sets/idx.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/format/sets/lattices_file.h"
#include "tutti/data/images/image_set.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/sample_files.h"
#include "tutti/data/text/pair_set.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> idx_class_names(const std::string& name) {
  if (name == "mnist") return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
          "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
}

std::unique_ptr<Dataset> generate(const DatasetSpec& spec, bool train,
                                  const FieldStatistics& statistics) {
  if (spec.count < 0 || spec.threads < 1)
    throw ConfigError(
        fmt::format("lattices: {} images on {} threads: give a positive number of each", spec.count,
                    spec.threads));
  const int64_t count = spec.count > 0 ? spec.count : train ? 10'000 : 2'000;
  const LatticeSpec lattices{
      .seed = spec.seed, .first = train ? 0 : kFirstTestLattice, .count = count};
  if (spec.when_read) return lattices_when_read(lattices, spec.classes, statistics);
  auto set = lattices_in_memory(lattices, spec.threads, spec.classes);
  set->set_statistics(statistics);
  return set;
}

std::unique_ptr<StoredImages> open_checked(const DatasetSpec& spec, bool train) {
  if (const KnownDataset& known = known_dataset(spec.name); known.open_file)
    return open_images(known, spec.dir, train, spec.classes);
  if (spec.name != "lattices")
    return open_idx(spec.dir, train, limited(idx_class_names(spec.name), spec.classes));
  if (is_file(spec.dir)) return open_lattices_file(spec.dir, spec.classes);
  return open_lattices_file(spec.dir / (train ? "lattices-train.bin" : "lattices-test.bin"),
                            spec.classes);
}

/// Says where a relative path was looked for; working folders differ between a terminal and a job.
std::string looked_in(const fs::path& dir) {
  std::error_code unknown;
  if (dir.is_absolute()) return "";
  return fmt::format(" (looked for {}: a relative path starts at the working folder)",
                     fs::absolute(dir, unknown).lexically_normal().string());
}

void check_place(const DatasetSpec& spec, const KnownDataset& known) {
  std::error_code error;
  const fs::file_status found = fs::status(spec.dir, error);
  if (found.type() == fs::file_type::not_found)
    throw IoError(fmt::format("{} does not exist{}; correct data.dir, or {}", spec.dir.string(),
                              looked_in(spec.dir), how_to_get(known, spec.dir)));
  if (found.type() == fs::file_type::none)
    throw IoError(fmt::format("{} cannot be reached: {}; correct data.dir", spec.dir.string(),
                              error.message()));
}

bool lists_files(const ArraysSpec& arrays) {
  return !arrays.train.empty() || !arrays.validation.empty() || !arrays.test.empty();
}

const std::vector<std::string>& split_files(const ArraysSpec& arrays, std::string_view split) {
  return split == "train" ? arrays.train : split == "test" ? arrays.test : arrays.validation;
}

std::unique_ptr<Dataset> open_arrays(const DatasetSpec& spec) {
  const ArraysSpec& own = spec.arrays;
  const std::string key = fmt::format("data.{}_files", spec.split);
  const std::vector<FieldLine> lines = parse_field_lines(own.fields);
  const auto listed = [&](std::string_view split, std::string_view named) {
    return npy_folders(listed_files(split_files(own, split), spec.dir, named), lines);
  };
  ArraySetSpec set{.files = listed(spec.split, key), .fields = lines, .key = key};
  if (set.fields.empty()) throw ConfigError("data.fields names no field");
  if (spec.split != "train" && !own.train.empty()) {
    try {
      set.settled_by = listed("train", "data.train_files");
    } catch (const Error&) {}  // an evaluation may run without the training files
  }
  if (!own.statistics.empty()) set.statistics = read_statistics(own.statistics, set.fields);
  return open_array_set(set);
}

/// Finds the existing files of a set with few known file names, in any folder below `dir`.
std::vector<fs::path> files_by_name(const fs::path& dir, const KnownDataset& known) {
  const auto is_known = [&](const std::string& name) {
    const auto fits = [&](const std::string& wanted) {
      return std::ranges::count(spellings_of(wanted), name) > 0;
    };
    return std::ranges::any_of(known.train_files, fits) ||
           std::ranges::any_of(known.test_files, fits);
  };
  if (is_file(dir))
    throw ConfigError(fmt::format(
        "{} is a file: to be staged, data.dir must be the folder that it lies in", dir.string()));
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(dir, failed))
    if (is_known(entry.path().filename().string()) && is_file(entry.path()))
      files.push_back(entry.path());
  if (files.empty())
    throw BadFile("{}: holds none of the files of {}; {}", dir.string(), known.name,
                  how_to_get(known, dir));
  return files;
}

/// Adds the files that descriptions of raw arrays name.
void add_described(std::vector<fs::path>& files) {
  for (size_t i = 0, listed = files.size(); i < listed; ++i)
    if (files[i].extension() == ".toml")
      for (const StoredArray& array : read_raw_arrays(FileBytes::open(files[i]), files[i]))
        if (array.file) files.emplace_back(array.file->name());
}

/// Adds files that HDF5's external links lead fields to. Files of a set have the same layout: the
/// others are inspected only if the first one has such links.
void add_linked(std::vector<fs::path>& files, const std::vector<FieldLine>& lines,
                const fs::path& dir) {
  NameCircles circles;
  const auto is_field = [&](const std::string& array) {
    return std::ranges::any_of(lines, [&](const FieldLine& line) {
      return std::ranges::any_of(line.arrays, [&](const std::string& name) {
        return plain_array_name(name, circles) == array;
      });
    });
  };
  const fs::path folder = fs::absolute(dir).lexically_normal();
  for (size_t i = 0, listed = files.size(); i < listed; ++i) {
    const FileBytes file = FileBytes::open(files[i]);
    if (is_hdf5(file))
      for (const StoredArray& array : read_hdf5(file, {}, &circles))
        if (array.file && array.file->name() != file.name() && is_field(array.info.name)) {
          const fs::path linked = fs::absolute(array.file->name()).lexically_normal(),
                         name = linked.lexically_relative(folder);
          files.push_back(*name.begin() == ".." ? linked : dir / name);
        }
    if (files.size() == listed) return;
  }
}

/// Without file names it takes the folders train, validation and test.
std::vector<std::string> volume_files(const DatasetSpec& spec) {
  if (lists_files(spec.arrays)) return split_files(spec.arrays, spec.split);
  std::error_code unknown;
  if (spec.split == "test" && !fs::is_directory(spec.dir / "test", unknown)) return {};
  return {spec.split};
}

std::unique_ptr<Dataset> open_neurons(const DatasetSpec& spec) {
  NeuronSetSpec own = spec.neurons;
  own.files = listed_files(volume_files(spec), spec.dir, fmt::format("data.{}_files", spec.split));
  own.fields = parse_field_lines(spec.arrays.fields);
  own.count = spec.count;
  return std::make_unique<NeuronSet>(own);
}

std::vector<fs::path> image_files(const DatasetSpec& spec) {
  if (is_file(spec.dir))
    throw ConfigError(
        fmt::format("{} is one archive: to be staged, it lies in a folder, which data.dir names",
                    spec.dir.string()));
  const ImageSource source = image_source(spec.dir, spec.split);
  if (!source.found())
    throw IoError(fmt::format("{}: has no images of the part '{}'", spec.dir.string(), spec.split));
  return files_of(source);
}

/// Without file names it takes all files in the folders train, validation and test.
std::vector<std::string> click_files(const DatasetSpec& spec) {
  if (lists_files(spec.arrays)) return split_files(spec.arrays, spec.split);
  std::error_code unknown;
  if (spec.split != "train" && !fs::is_directory(spec.dir / spec.split, unknown)) return {};
  return {spec.split + "/*"};
}

std::vector<fs::path> listed_clicks(const DatasetSpec& spec) {
  return listed_files(click_files(spec), spec.dir, fmt::format("data.{}_files", spec.split));
}

/// Lists the files of token-pairs, for the sources or the targets.
std::vector<fs::path> pair_files(const DatasetSpec& spec, const char* side) {
  const KnownDataset& known = known_dataset(spec.name);
  check_place(spec, known);
  std::error_code unknown;
  if (!fs::is_directory(spec.dir / side, unknown))
    throw IoError(fmt::format("{} has no folder '{}', in which the token files of the {}s lie; {}",
                              spec.dir.string(), side, side, how_to_get(known, spec.dir)));
  return listed_files({fmt::format("{}/{}-*.tokens", side, spec.split)}, spec.dir, "data.dir");
}

bool has_pairs(const DatasetSpec& spec) {
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(spec.dir / "source", unknown))
    if (entry.path().filename().string().starts_with(spec.split + "-")) return true;
  return spec.split == "train";
}

bool is_text_set(const std::string& name) { return name == "text" || name == "tokens"; }

/// Without file names it takes the files that match the catalog's pattern, PART*.txt.
std::vector<std::string> text_files(const DatasetSpec& spec, const std::string& part) {
  if (lists_files(spec.arrays)) return split_files(spec.arrays, part);
  const KnownDataset& known = known_dataset(spec.name);
  const std::string pattern = part == "train"  ? known.train_files.front()
                              : part == "test" ? known.test_files.front()
                                               : known.validation_files.front();
  const size_t star = pattern.find('*');
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(spec.dir, unknown)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(pattern.substr(0, star)) && name.ends_with(pattern.substr(star + 1)))
      return {pattern};
  }
  return part == "train" ? std::vector<std::string>{pattern} : std::vector<std::string>();
}

std::vector<fs::path> listed_texts(const DatasetSpec& spec, const std::string& part) {
  const std::string key = fmt::format("data.{}_files", part);
  const std::vector<std::string> entries = text_files(spec, part);
  std::error_code unknown;
  for (const std::string& entry : entries)
    if (spec.name == "text" && fs::is_directory(spec.dir / entry, unknown))
      throw ConfigError(
          fmt::format("{}: {} is a folder: name the text files in it, or a pattern such as \"{}\"",
                      key, (spec.dir / entry).lexically_normal().string(),
                      (fs::path(entry) / "*.txt").lexically_normal().string()));
  return listed_files(entries, spec.dir, key);
}

std::unique_ptr<Dataset> open_text_set(const DatasetSpec& spec) {
  TextSetSpec text = spec.text;
  if (spec.name == "tokens") text.kind = TextSetSpec::Kind::tokens;
  text.files = listed_texts(spec, spec.split);
  if (text.kind == TextSetSpec::Kind::characters && text.vocabulary.empty() &&
      spec.split != "train") {
    try {
      text.training = listed_texts(spec, "train");
    } catch (const BadFile& error) {
      throw BadFile(
          "{}; characters have the numbers that the training text gives them: name its files, or a "
          "run's folder 'tokenizer' in data.vocabulary",
          error.what());
    }
  }
  return std::make_unique<TextSet>(text);
}

}  // namespace

std::unique_ptr<StoredImages> open_images(const KnownDataset& known, const fs::path& place,
                                          bool train, const ClassLimit& limit) {
  const std::vector<std::string>& names = train ? known.train_files : known.test_files;
  const bool one = is_file(place);
  auto all =
      std::make_unique<StoredImages>(known.open_file(one ? place : place / names.front(), limit));
  for (size_t i = 1; i < names.size() && !one; ++i)
    all->append(known.open_file(place / names[i], limit));
  return all;
}

std::vector<fs::path> dataset_files(const DatasetSpec& spec) {
  const KnownDataset& known = known_dataset(spec.name);
  if (spec.name == "arrays") {
    const std::string key = fmt::format("data.{}_files", spec.split);
    for (const std::string& entry : split_files(spec.arrays, spec.split))
      if (fs::path(entry).is_absolute())
        throw ConfigError(fmt::format(
            "{}: {} is an absolute path: to be staged, files are named from data.dir on", key,
            entry));
    std::vector<fs::path> files = listed_files(split_files(spec.arrays, spec.split), spec.dir, key);
    add_described(files);
    add_linked(files, parse_field_lines(spec.arrays.fields), spec.dir);
    return files;
  }
  if (spec.name == "clicks") return listed_clicks(spec);
  if (spec.name == "token-pairs") {
    std::vector<fs::path> files = pair_files(spec, "source");
    const std::vector<fs::path> targets = pair_files(spec, "target");
    files.insert(files.end(), targets.begin(), targets.end());
    return files;
  }
  if (is_text_set(spec.name)) {
    std::vector<fs::path> files = listed_texts(spec, spec.split);
    for (const char* own : {"vocab.json", "merges.txt"})  // these lie beside token files
      if (spec.name == "tokens" && is_file(files.front().parent_path() / own))
        files.push_back(files.front().parent_path() / own);
    return files;
  }
  if (spec.dir.empty())
    throw ConfigError(fmt::format(
        "{} without data.dir is generated in memory: there is nothing to stage", spec.name));
  check_place(spec, known);
  if (spec.name == "neurons")
    return listed_files(volume_files(spec), spec.dir, fmt::format("data.{}_files", spec.split));
  if (spec.name == "imagenet") return image_files(spec);
  if (!is_sample_set(spec.name)) return files_by_name(spec.dir, known);
  std::vector<fs::path> files = sample_set_files(spec.name, spec.dir, spec.split);
  if (spec.name == "deepcam") files.push_back(spec.dir / "stats.h5");
  return files;
}

bool has_split(const DatasetSpec& spec) {
  (void)known_dataset(spec.name);
  if (spec.split != "train" && spec.split != "validation" && spec.split != "test")
    throw ConfigError(fmt::format("split '{}' of {} is not one of train, validation, test",
                                  spec.split, spec.name));
  if (spec.split == "train") return true;
  if (spec.name == "neurons") return !volume_files(spec).empty();
  if (spec.name == "clicks") return !click_files(spec).empty();
  if (is_text_set(spec.name)) return !text_files(spec, spec.split).empty();
  if (spec.name == "token-pairs") return has_pairs(spec);
  if (spec.name == "arrays") return !split_files(spec.arrays, spec.split).empty();
  if (spec.name == "imagenet") return image_source(spec.dir, spec.split).found();
  if (!is_sample_set(spec.name)) return spec.split == "test";
  std::error_code unknown;
  return spec.split == "validation" || fs::is_directory(spec.dir / spec.split, unknown);
}

std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec) {
  const KnownDataset& known = known_dataset(spec.name);
  if (!has_split(spec))
    throw ConfigError(
        spec.name == "arrays" || spec.name == "neurons" || spec.name == "clicks" ||
                is_text_set(spec.name)
            ? fmt::format("data.{0}_files names no files: there is no {0} set", spec.split)
        : is_sample_set(spec.name)
            ? fmt::format("{} has no {} set: there is no folder {}", spec.name, spec.split,
                          (spec.dir / spec.split).string())
            : fmt::format("{} has no {} set of its own{}", spec.name, spec.split,
                          spec.split == "validation"
                              ? ": data.validation takes one from the training set"
                              : ""));
  if (spec.name == "arrays") return open_arrays(spec);
  if (spec.name == "neurons") return open_neurons(spec);
  if (is_text_set(spec.name)) return open_text_set(spec);
  if (spec.name == "token-pairs")
    return std::make_unique<PairSet>(PairSetSpec{.source = pair_files(spec, "source"),
                                                 .target = pair_files(spec, "target"),
                                                 .window = spec.text.window});
  if (spec.name == "clicks") {
    ClickSetSpec clicks = spec.clicks;
    clicks.files = listed_clicks(spec);
    return std::make_unique<ClickSet>(clicks);
  }
  const bool train = spec.split == "train";
  const std::string set = fmt::format("{} ({})", spec.name, spec.split);
  try {
    const bool generated = spec.dir.empty() && spec.name == "lattices";
    if (spec.dir.empty() && !generated)
      throw ConfigError(
          fmt::format("needs the directory of its files; to get them, {}", known.how_to_get));
    if (!generated) check_place(spec, known);
    if (spec.name == "imagenet")
      return open_image_set(spec.dir, spec.split, spec.classes, known.statistics);
    if (is_sample_set(spec.name)) return open_sample_set(spec.name, spec.dir, spec.split);
    if (generated) return generate(spec, train, known.statistics);
    auto set = open_checked(spec, train);
    set->set_statistics(known.statistics);
    return set;
  } catch (const BadFile& error) {
    throw IoError(fmt::format("{}: {}; to get the files, {}", set, error.what(),
                              how_to_get(known, spec.dir)));
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}: {}", set, error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", set, error.what()));
  }
}

void check_same_fields(const Dataset& train, const Dataset& other, std::string_view part) {
  for (const Field& field : train.fields()) {
    const Field& there = field_named(other, field.name);
    if (field.shape != there.shape || field.element != there.element)
      throw IoError(fmt::format(
          "the training set's field is {}, but the {} set's is {}: both must be alike; the files "
          "do not belong together",
          field.to_string(), part, there.to_string()));
  }
}

}  // namespace tutti::data
