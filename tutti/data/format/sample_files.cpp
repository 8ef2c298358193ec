#include "tutti/data/format/sample_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/data/format/array_file.h"
#include "tutti/data/format/tf_example.h"
#include "tutti/data/format/tfrecord.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

Shape shape_of(const std::vector<int64_t>& extents, const std::string& file) {
  if (extents.size() > Shape::kMaxRank)
    throw BadFile(fmt::format("{}: an array of {} dimensions; a field has {} at most", file,
                              extents.size(), +Shape::kMaxRank));
  return Shape(std::span<const int64_t>(extents));
}

/// The only record of a file.
std::vector<uint8_t> only_record(const fs::path& path) {
  TfRecordReader reader(path);
  std::vector<uint8_t> record, more;
  if (!reader.next(record))
    throw BadFile(fmt::format("{}: holds no record, expected one sample", path.string()));
  if (reader.next(more))
    throw BadFile(fmt::format(
        "{}: holds more than one record; expected one sample a file, as CosmoFlow's are: split it",
        path.string()));
  return record;
}

/// The feature's values as they lie in memory.
std::span<const uint8_t> bytes_of(const TfFeature& feature, ElementType element) {
  switch (feature.kind) {
    case TfFeature::Kind::bytes: return feature.bytes.front();
    case TfFeature::Kind::floats:
      if (element == ElementType::f32)
        return {reinterpret_cast<const uint8_t*>(feature.floats.data()), feature.floats.size() * 4};
      break;
    case TfFeature::Kind::integers:
      if (element == ElementType::i64)
        return {reinterpret_cast<const uint8_t*>(feature.integers.data()),
                feature.integers.size() * 8};
      break;
    case TfFeature::Kind::none: break;
  }
  return {};
}

class ExampleFiles final : public Dataset {
 public:
  ExampleFiles(std::vector<fs::path> files, const std::vector<ExampleField>& fields)
      : files_(std::move(files)) {
    const std::vector<uint8_t> record = only_record(files_.front());
    for (const ExampleField& field : fields) {
      std::vector<int64_t> extents = field.shape;
      if (const int64_t open = std::ranges::count(extents, 0); open > 0)
        std::ranges::replace(extents, 0, side(record, field, open));
      fields_.push_back({.name = field.name,
                         .element = field.element,
                         .shape = shape_of(extents, files_.front().string())});
    }
  }

  int64_t size() const override { return std::ssize(files_); }
  const std::vector<Field>& fields() const override { return fields_; }

  void read(int64_t index, Sample& sample) const override {
    // Copies, because a reader that hangs may be left behind, and the set be gone when it wakes.
    const fs::path path = files_[static_cast<size_t>(index)];
    const std::vector<Field> fields = fields_;
    const std::string what = path.string() + ", record 0";
    const std::vector<uint8_t> record = only_record(path);
    const std::vector<TfFeature> features = parse_example(record, what);
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::span<const uint8_t> bytes = value(features, fields[f], what);
      if (bytes.size() != fields[f].bytes())
        throw BadFile(fmt::format("{}: the feature '{}' has {} bytes, expected {} for {}", what,
                                  fields[f].name, bytes.size(), fields[f].bytes(),
                                  fields[f].to_string()));
      std::memcpy(sample.own(f), bytes.data(), bytes.size());
      require_finite_field(fields[f], sample.at(f), what);
    }
  }

 private:
  static void require_finite_field(const Field& field, const void* values,
                                   const std::string& what) {
    if (field.element != ElementType::f32) return;
    const auto* x = static_cast<const float*>(values);
    for (int64_t i = 0; i < field.elements(); ++i)
      if (!std::isfinite(x[i]))
        throw BadFile(
            fmt::format("{}: element {} of the feature '{}' is not finite", what, i, field.name));
  }
  static std::span<const uint8_t> value(const std::vector<TfFeature>& features, const Field& field,
                                        const std::string& what) {
    const auto found = std::ranges::find(features, field.name, &TfFeature::name);
    if (found == features.end()) {
      std::string names;
      for (const TfFeature& feature : features) names += (names.empty() ? "" : ", ") + feature.name;
      throw BadFile(fmt::format("{}: there is no feature '{}', only: {}", what, field.name, names));
    }
    if (found->kind == TfFeature::Kind::bytes && found->bytes.size() != 1)
      throw BadFile(fmt::format("{}: the feature '{}' has {} texts, expected one", what, field.name,
                                found->bytes.size()));
    const std::span<const uint8_t> bytes = bytes_of(*found, field.element);
    if (bytes.data() == nullptr)
      throw BadFile(fmt::format("{}: the feature '{}' holds no {}", what, field.name,
                                name_of(field.element)));
    return bytes;
  }
  /// The extent that `open` extents have alike.
  int64_t side(const std::vector<uint8_t>& record, const ExampleField& field, int64_t open) const {
    const std::string what = files_.front().string() + ", record 0";
    const Field plain{.name = field.name, .element = field.element};
    const auto elements = static_cast<double>(
        value(parse_example(record, what), plain, what).size() / size_of(field.element));
    double known = 1;
    for (const int64_t extent : field.shape) known *= extent > 0 ? static_cast<double>(extent) : 1;
    const double side = std::round(std::pow(elements / known, 1.0 / static_cast<double>(open)));
    if (side < 1 || std::pow(side, static_cast<double>(open)) * known != elements)
      throw BadFile(fmt::format("{}: the feature '{}' has {} elements, which is no cube of {} each",
                                what, field.name, elements, known));
    return static_cast<int64_t>(side);
  }

  std::vector<fs::path> files_;
  std::vector<Field> fields_;
};

class ArrayFiles final : public Dataset {
 public:
  ArrayFiles(std::vector<fs::path> files, const std::vector<ArrayField>& fields)
      : files_(std::move(files)), arrays_(fields),
        opened_(std::make_shared<std::vector<std::atomic<bool>>>(files_.size())) {
    const ArrayFile first = open_array_file(files_.front());
    for (const ArrayField& field : fields) {
      const ArrayInfo& info = first.arrays()[first.find(field.array)];
      fields_.push_back({.name = field.name,
                         .element = info.type,
                         .shape = shape_of(info.shape, files_.front().string()),
                         .class_names = field.class_names,
                         .statistics = field.statistics});
    }
  }

  int64_t size() const override { return std::ssize(files_); }
  const std::vector<Field>& fields() const override { return fields_; }

  void read(int64_t index, Sample& sample) const override {
    // Copies, because a reader that hangs may be left behind, and the set be gone when it wakes.
    const auto at = static_cast<size_t>(index);
    const fs::path path = files_[at];
    const std::vector<Field> fields = fields_;
    const std::vector<ArrayField> arrays = arrays_;
    const std::shared_ptr<std::vector<std::atomic<bool>>> opened = opened_;
    // A damaged file may end the process that opens it, so the first time another one tries it.
    const ArrayFile file = open_array_file(path, {.probe = !(*opened)[at].load()});
    (*opened)[at] = true;
    for (size_t f = 0; f < fields.size(); ++f) {
      const std::vector<int64_t> extents(fields[f].shape.begin(), fields[f].shape.end());
      const size_t array = file.find(arrays[f].array, fields[f].element, extents);
      const ArrayInfo& info = file.arrays()[array];
      const Slab all = Slab::all(info);
      file.read(array, all, sample.own(f));
      check_values(path.string(), info, all, fields[f], sample.at(f));
    }
  }

 private:
  static void check_values(const std::string& path, const ArrayInfo& info, const Slab& slab,
                           const Field& field, const void* values) {
    if (field.element == ElementType::f32)
      require_finite({static_cast<const float*>(values), static_cast<size_t>(field.elements())},
                     path, info, slab);
    if (field.class_names.empty()) return;
    with_elements(field.element, values, [&](const auto* x) {
      for (int64_t i = 0; i < field.elements(); ++i)
        if (const auto number = static_cast<double>(static_cast<float>(x[i]));
            number < 0 || number >= static_cast<double>(field.class_names.size()) ||
            number != std::floor(number))
          throw BadFile(
              fmt::format("{}: element {} of '{}' is {}, expected a class number from 0 "
                          "to {}",
                          path, i, info.name, number, field.class_names.size() - 1));
    });
  }

  std::vector<fs::path> files_;
  std::vector<ArrayField> arrays_;
  std::vector<Field> fields_;
  // Shared with readers that may be left behind.
  std::shared_ptr<std::vector<std::atomic<bool>>> opened_;
};

}  // namespace

std::vector<fs::path> sample_files(const fs::path& folder,
                                   const std::vector<std::string>& endings) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::any_of(endings, [&](const std::string& end) { return name.ends_with(end); }))
      files.push_back(entry.path());
  }
  if (failed)
    throw BadFile(
        fmt::format("{}: cannot look into the folder: {}", folder.string(), failed.message()));
  if (files.empty())
    throw BadFile(fmt::format("{}: holds no files that end in {}", folder.string(),
                              fmt::join(endings, " or ")));
  std::ranges::sort(files);
  return files;
}

std::unique_ptr<Dataset> open_example_files(std::vector<fs::path> files,
                                            const std::vector<ExampleField>& fields) {
  return std::make_unique<ExampleFiles>(std::move(files), fields);
}

std::unique_ptr<Dataset> open_array_files(std::vector<fs::path> files,
                                          const std::vector<ArrayField>& fields) {
  return std::make_unique<ArrayFiles>(std::move(files), fields);
}

namespace {

/// The channels' extremes over the training set, as DeepCAM publishes them.
FieldStatistics deepcam_statistics(const fs::path& file) {
  const ArrayFile statistics = open_array_file(file);
  FieldStatistics known;
  const auto read = [&](const char* name, std::vector<float>& values) {
    const size_t array = statistics.find(name);
    const ArrayInfo& info = statistics.arrays()[array];
    const Slab all = Slab::all(info);
    values.resize(static_cast<size_t>(info.elements()));
    statistics.read_f32(array, all, values.data());
    require_finite(values, file.string(), info, all);
  };
  read("climate/minval", known.least);
  read("climate/maxval", known.greatest);
  return known;
}

}  // namespace

bool is_sample_set(std::string_view name) { return name == "cosmoflow" || name == "deepcam"; }

std::vector<fs::path> sample_set_files(std::string_view name, const fs::path& folder,
                                       std::string_view part) {
  if (name == "cosmoflow") return sample_files(folder / part, {".tfrecord", ".tfrecord.gz"});
  return sample_files(folder / part, {".h5", ".hdf5"});
}

std::unique_ptr<Dataset> open_sample_set(std::string_view name, const fs::path& folder,
                                         std::string_view part) {
  std::vector<fs::path> files = sample_set_files(name, folder, part);
  if (name == "cosmoflow")
    return open_example_files(std::move(files),
                              {{.name = "x", .element = ElementType::i16, .shape = {0, 0, 0, 4}},
                               {.name = "y", .element = ElementType::f32, .shape = {4}}});
  return open_array_files(
      std::move(files), {{.name = "data",
                          .array = "climate/data",
                          .statistics = deepcam_statistics(folder / "stats.h5")},
                         {.name = "labels",
                          .array = "climate/labels_0",
                          .class_names = {"background", "tropical cyclone", "atmospheric river"}}});
}

}  // namespace tutti::data
