#include "tutti/cli/data/data_inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/shell.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/data/data_suggestion.h"
#include "tutti/cli/data/inspect_arrays.h"
#include "tutti/cli/data/inspect_files.h"
#include "tutti/config/config.h"
#include "tutti/data/arrays/npy_folders.h"
#include "tutti/data/arrays/sample_file.h"
#include "tutti/data/file/file_list.h"
#include "tutti/data/format/open_array.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"
#include "tutti/data/open/sample_files.h"
#include "tutti/keep/run_folder.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// Bytes are text if they are few and their number differs from record to record.
bool is_text(const data::TfFeature& feature) {
  return feature.kind == data::TfFeature::Kind::bytes &&
         (feature.bytes.size() != 1 || feature.bytes[0].size() < 64);
}

/// Bytes have no type of their own: they are volumes of 16-bit numbers at four times, as in
/// CosmoFlow, or bytes.
FoundArray found_feature(const data::TfFeature& feature) {
  FoundArray found{.name = feature.name,
                   .whole_numbers = feature.kind != data::TfFeature::Kind::floats,
                   .wide = feature.kind == data::TfFeature::Kind::integers,
                   .shape = {static_cast<int64_t>(feature.values())},
                   .as = ""};
  if (feature.kind != data::TfFeature::Kind::bytes) return found;
  const auto bytes = feature.bytes.size() == 1 ? std::ssize(feature.bytes[0]) : 0;
  const int64_t side = std::llround(std::cbrt(static_cast<double>(bytes) / 8));
  found.shape = {bytes};
  found.as = side > 1 && side * side * side * 8 == bytes ? " as i16 ? ? ? 4"
                                                         : fmt::format(" as u8 {}", bytes);
  return found;
}

std::string feature_line(const data::TfFeature& feature) {
  using Kind = data::TfFeature::Kind;
  ValueRange range;
  switch (feature.kind) {
    case Kind::bytes:
      return inspected_line(feature.name, "bytes",
                            feature.bytes.size() == 1
                                ? fmt::format("{} bytes", feature.bytes[0].size())
                                : fmt::format("{} texts", feature.bytes.size()),
                            "");
    case Kind::floats:
      range.add(feature.floats);
      return inspected_line(feature.name, "f32", std::to_string(feature.floats.size()),
                            range.to_string());
    case Kind::integers: {
      const std::vector<float> values(feature.integers.begin(), feature.integers.end());
      range.add(values);
      return inspected_line(feature.name, "i64", std::to_string(feature.integers.size()),
                            range.to_string());
    }
    case Kind::none: break;
  }
  return inspected_line(feature.name, "", "no value", "");
}

Inspected inspect_records(const fs::path& path) {
  data::TfRecordReader reader(path);
  std::vector<uint8_t> record, first;
  int64_t records = 0;
  for (; reader.next(record); ++records)
    if (records == 0) first = record;
  Inspected found{fmt::format("{}: {} record(s); the first has\n", path.string(), records), {}};
  if (records > 0)
    for (const data::TfFeature& feature :
         data::parse_example(first, path.string() + ", record 0")) {
      found.text += feature_line(feature);
      if (feature.values() > 0 && !is_text(feature)) found.arrays.push_back(found_feature(feature));
    }
  return found;
}

/// The report that is shown.
struct Report : InspectedData {
  /// Returns the listing as comments, so that the whole is a configuration.
  std::string to_toml() const {
    std::string text;
    for (size_t at = 0; at < listing.size();) {
      const size_t end = std::min(listing.find('\n', at), listing.size());
      const std::string_view shown = std::string_view(listing).substr(at, end - at);
      text += fmt::format("#{}{}\n", shown.empty() || shown[0] == ' ' ? "" : " ", shown);
      at = end + 1;
    }
    return fmt::format("{}\n# A configuration to start from:\n{}", text, configuration);
  }
  std::string to_json() const {
    return print_json({{"listing", as_utf8(listing)}, {"configuration", as_utf8(configuration)}},
                      2) +
           "\n";
  }
};

/// An image of three axes and whole numbers of the same extents may be objects in a volume.
std::string tracing_of(const std::vector<FoundArray>& arrays) {
  for (const FoundArray& image : arrays)
    for (const FoundArray& labels : arrays)
      if (!image.wide && labels.wide && image.shape.size() == 3 && image.shape == labels.shape)
        return fmt::format(
            "\n# To trace the objects that {1} numbers, as in examples/ffn.toml: data.dataset = "
            "\"neurons\"\n# and data.fields = [\"image: from {0}\", \"label: from {1}\"].\n",
            image.name, labels.name);
  return "";
}

/// Reports the first of the files as an example of all.
Report report_files(const fs::path& first, const SuggestedFiles& files) {
  const Inspected found =
      data::is_record_file(first) ? inspect_records(first) : inspect_arrays(first);
  return {{found.text, suggested_configuration(found.arrays, files) + tracing_of(found.arrays)}};
}

/// Returns the folder of one of these names, or the file `name.h5` or similar; empty: there is
/// none.
std::vector<std::string> part_named(const fs::path& folder,
                                    std::initializer_list<std::string_view> names) {
  std::error_code unknown;
  for (const std::string_view name : names) {
    if (fs::is_directory(folder / name, unknown)) return {std::string(name)};
    for (const auto& entry : fs::directory_iterator(folder, unknown))
      if (const std::string file = entry.path().filename().string();
          file.starts_with(fmt::format("{}.", name)) && data::is_sample_file_name(file) &&
          !file.ends_with(".toml"))
        return {file};
  }
  return {};
}

fs::path files_folder(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

/// Reports a folder of array files, or of folders for training and validation.
Report report_folder(const fs::path& folder) {
  SuggestedFiles files{
      .dir = fs::absolute(folder).lexically_normal(), .train = {"."}, .validation = {}, .test = {}};
  if (const auto train = part_named(folder, {"train"}); !train.empty()) {
    files.train = train;
    files.validation = part_named(folder, {"validation", "val", "valid"});
    files.test = part_named(folder, {"test"});
  }
  const std::vector<fs::path> all = data::listed_files(files.train, folder, folder.string());
  if (data::look_like_fields(all)) return report_files(files_folder(all.front()), files);
  Report report = report_files(all.front(), files);
  report.listing = fmt::format("{}: {} file(s), of which the first is\n{}",
                               (folder / files.train[0]).lexically_normal().string(), all.size(),
                               report.listing);
  return report;
}

std::string network_for(const std::string& dataset) {
  if (dataset == "cosmoflow") return "cosmoflow";
  if (dataset == "deepcam") return "deepcam-small";
  if (dataset == "cbed" || dataset == "stem") return "resnet18";
  return dataset.ends_with("mnist") ? "lenet" : "resnet20";
}

Report report_set(const std::string& name, const fs::path& path) {
  const auto set = data::open_dataset({.name = name, .dir = path, .split = "train"});
  Report report{
      {fmt::format("{}: {} training samples of {}\n", path.string(), set->size(), name), {}}};
  data::Sample sample(set->fields());
  const int64_t looked = std::min<int64_t>(set->size(), 16);
  std::vector<ValueRange> ranges(set->fields().size());
  for (int64_t i = 0; i < looked; ++i) {
    set->read(i, sample);
    for (size_t f = 0; f < ranges.size(); ++f) {
      std::vector<float> values(static_cast<size_t>(set->fields()[f].elements()));
      data::to_f32(set->fields()[f].element, sample.at(f), std::ssize(values), values.data());
      ranges[f].add(values);
    }
  }
  for (size_t f = 0; f < ranges.size(); ++f) {
    const data::Field& field = set->fields()[f];
    report.listing += inspected_line(
        field.name, name_of(field.element), extents_text({field.shape.begin(), field.shape.end()}),
        fmt::format("{} in the first {}", ranges[f].to_string(), looked));
  }
  report.configuration = fmt::format(
      "[data]\ndataset = \"{}\"\ndir = {}\ntransforms = {}  # the data set's own\n\n[model]\nname "
      "= \"{}\"\n\n[batch]\nglobal = {}\n\n[run]\nepochs = 1\n",
      name, toml_of_path(fs::absolute(path).lexically_normal()),
      config::to_toml(data::known_dataset(name).transforms), network_for(name),
      std::min<int64_t>(set->size(), 16));
  return report;
}

/// Several sets lie in train/*.h5: an array that only one set has tells which it is.
bool holds_set(const std::string& name, const fs::path& file) {
  const std::string_view own = name == "deepcam" ? "climate/data"
                               : name == "cbed"  ? "potential"
                               : name == "stem"  ? "columns"
                                                 : "";
  if (own.empty()) return true;
  const data::ArrayFile opened = data::open_array_file(file);
  return std::ranges::find(opened.arrays(), own, &data::ArrayInfo::name) != opened.arrays().end() &&
         (name == "deepcam" || std::ranges::find(opened.arrays(), "class",
                                                 &data::ArrayInfo::name) != opened.arrays().end());
}

/// Returns the known data set whose files lie in the folder; empty: none.
std::string known_set_in(const fs::path& folder) {
  std::error_code unknown;
  for (const data::KnownDataset& known : data::known_datasets()) {
    if (known.name == "arrays" || known.name == "imagenet") continue;
    if (data::is_sample_set(known.name)) {
      try {
        const auto files = data::sample_set_files(known.name, folder, "train");
        if (!files.empty() && holds_set(known.name, files.front())) return known.name;
      } catch (const IoError&) {}
      continue;
    }
    const auto there = [&](const std::string& file) {
      return std::ranges::any_of(data::spellings_of(file), [&](const std::string& name) {
        return fs::exists(folder / name, unknown);
      });
    };
    // Without training files, opening the set reports which are missing.
    if (std::ranges::any_of(known.train_files, there) ||
        std::ranges::any_of(known.test_files, there))
      return known.name;
  }
  return "";
}

/// Returns the folder of the run that the path, or a checkpoint at the path, belongs to; empty:
/// none.
fs::path run_folder_of(const fs::path& path) {
  fs::path at = path.has_filename() ? path : path.parent_path();
  bool own = true;  // whether `at` may be the run: not a checkpoint or a file in one
  for (int up = 0; up < 4 && !at.empty(); ++up) {
    std::error_code unknown;
    if (own && fs::exists(at / keep::kConfigFile, unknown) &&
        keep::holds_run(at, at / "checkpoints"))
      return at;
    own = at.filename() == "checkpoints";
    at = at.parent_path();
  }
  return {};
}

void refuse_run(const fs::path& path) {
  const fs::path run = run_folder_of(path);
  if (run.empty()) return;
  const std::string folder = shell_word(run.string()),
                    config = shell_word((run / keep::kConfigFile).string());
  throw ConfigError(fmt::format(
      "{} {} a run, not data: 'tutti eval {} --weights {}' evaluates its weights, 'tutti model "
      "show {}' shows its network, 'tensorboard --logdir {}' its course; docs/runs.md says what "
      "lies there",
      path.string(), run == path || !path.has_filename() ? "is the folder of" : "belongs to",
      config, folder, config, folder));
}

Report report_on(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found)
    throw IoError(fmt::format("{} does not exist", path.string()));
  refuse_run(path);
  if (is_click_log(path)) return {inspect_clicks(path)};
  if (fs::is_directory(status)) {
    const std::string name = known_set_in(path);
    if (name.empty() && is_image_set(path)) return {inspect_images(path)};
    if (is_pair_set(path)) return {inspect_pairs(path)};
    if (name.empty() && is_text_path(path)) return {inspect_text(path)};
    return name.empty() ? report_folder(path) : report_set(name, path);
  }
  if (is_text_path(path)) return {inspect_text(path)};
  if (path.extension() == ".tar") return {inspect_images(path)};
  const fs::path whole = fs::absolute(path).lexically_normal();
  return report_files(path, {.dir = whole.parent_path(),
                             .train = {whole.filename().string()},
                             .validation = {},
                             .test = {}});
}

}  // namespace

std::string inspect_data(const fs::path& path, bool json) {
  const Report report = report_on(path);
  return json ? report.to_json() : report.to_toml();
}

}  // namespace tutti::cli
