#include "tutti/cli/data_inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/data/format/array_file.h"
#include "tutti/data/format/catalog.h"
#include "tutti/data/format/sample_files.h"
#include "tutti/data/format/tf_example.h"
#include "tutti/data/format/tfrecord.h"
#include "tutti/data/open.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostElements = int64_t{64} << 20;

struct ValueRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t not_finite = 0;

  void add(std::span<const float> values) {
    for (const double x : values) {
      if (!std::isfinite(x)) {
        ++not_finite;
        continue;
      }
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  std::string to_string() const {
    std::string text = low <= high ? fmt::format("{:.6g} to {:.6g}", low, high) : "no number";
    if (not_finite > 0) text += fmt::format(", {} not finite", not_finite);
    return text;
  }
};

std::string extents(std::span<const int64_t> shape) {
  return shape.empty() ? "one number" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string line(std::string_view name, std::string_view type, const std::string& shape,
                 const std::string& values) {
  return fmt::format("  {:<32} {:<5} {:<20} {}\n", name, type, shape, values);
}

/// The whole array, or as many rows of its first dimension as fit the limit.
std::string range_of(const data::ArrayFile& file, size_t array) {
  const data::ArrayInfo& info = file.arrays()[array];
  data::Slab slab = data::Slab::all(info);
  const int64_t each =
      info.shape.empty() ? 1 : info.elements() / std::max<int64_t>(info.shape[0], 1);
  if (info.elements() > kMostElements) {
    if (each > kMostElements) return "too large to be looked through";
    slab = data::Slab::rows(info, 0, kMostElements / each);
  }
  std::vector<float> values(static_cast<size_t>(slab.elements()));
  file.read_f32(array, slab, values.data());
  ValueRange range;
  range.add(values);
  return range.to_string() + (slab.elements() < info.elements()
                                  ? fmt::format(" in the first {} rows", slab.count[0])
                                  : "");
}

std::string inspect_arrays(const fs::path& path) {
  const data::ArrayFile file = data::open_array_file(path);
  std::string text = fmt::format("{}: {} array(s)\n", path.string(), file.arrays().size());
  for (size_t i = 0; i < file.arrays().size(); ++i) {
    const data::ArrayInfo& info = file.arrays()[i];
    std::string values = info.problem.empty() ? range_of(file, i) : info.problem;
    if (const auto units = info.attributes.find("units");
        units != info.attributes.end() && !units->second.text.empty())
      values += ", " + units->second.text;
    text += line(info.name, name_of(info.type), extents(info.shape), values);
  }
  return text;
}

std::string feature_line(const data::TfFeature& feature) {
  using Kind = data::TfFeature::Kind;
  ValueRange range;
  switch (feature.kind) {
    case Kind::bytes:
      return line(feature.name, "bytes",
                  feature.bytes.size() == 1 ? fmt::format("{} bytes", feature.bytes[0].size())
                                            : fmt::format("{} texts", feature.bytes.size()),
                  "");
    case Kind::floats:
      range.add(feature.floats);
      return line(feature.name, "f32", std::to_string(feature.floats.size()), range.to_string());
    case Kind::integers: {
      const std::vector<float> values(feature.integers.begin(), feature.integers.end());
      range.add(values);
      return line(feature.name, "i64", std::to_string(feature.integers.size()), range.to_string());
    }
    case Kind::none: break;
  }
  return line(feature.name, "", "no value", "");
}

std::string inspect_records(const fs::path& path) {
  data::TfRecordReader reader(path);
  std::vector<uint8_t> record, first;
  int64_t records = 0;
  for (; reader.next(record); ++records)
    if (records == 0) first = record;
  std::string text = fmt::format("{}: {} record(s); the first has\n", path.string(), records);
  if (records > 0)
    for (const data::TfFeature& feature : data::parse_example(first, path.string() + ", record 0"))
      text += feature_line(feature);
  return text;
}

std::string inspect_set(const std::string& name, const fs::path& path) {
  const auto set = data::open_dataset({.name = name, .dir = path, .split = "train"});
  std::string text =
      fmt::format("{}: {} training samples of {}\n", path.string(), set->size(), name);
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
    text +=
        line(field.name, name_of(field.element), extents({field.shape.begin(), field.shape.end()}),
             fmt::format("{} in the first {}", ranges[f].to_string(), looked));
  }
  text +=
      fmt::format("\nA configuration to start from:\n\n[data]\ndataset = \"{}\"\ndir = \"{}\"\n",
                  name, fs::absolute(path).lexically_normal().string());
  text += "transforms = [";
  for (const std::string& steps : data::known_dataset(name).transforms)
    text += fmt::format("\"{}\"", steps);
  return text + "]  # the data set's own\n";
}

/// The known data set whose files lie in the folder; empty: none.
std::string known_set_in(const fs::path& folder) {
  std::error_code unknown;
  for (const data::KnownDataset& known : data::known_datasets()) {
    if (data::is_sample_set(known.name)) {
      try {
        if (!data::sample_set_files(known.name, folder, "train").empty()) return known.name;
      } catch (const IoError&) {}
      continue;
    }
    if (std::ranges::any_of(known.train_files, [&](std::string file) {
          if (const size_t either = file.find("[.gz]"); either != file.npos) file.resize(either);
          return fs::exists(folder / file, unknown) || fs::exists(folder / (file + ".gz"), unknown);
        }))
      return known.name;
  }
  return "";
}

}  // namespace

std::string inspect_data(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found)
    throw IoError(fmt::format("{} does not exist", path.string()));
  if (fs::is_directory(status)) {
    const std::string name = known_set_in(path);
    if (name.empty())
      throw IoError(fmt::format(
          "{}: no data set that 'tutti data list' names lies in this folder; give one of its files",
          path.string()));
    return inspect_set(name, path);
  }
  const std::string name = path.filename().string();
  if (name.ends_with(".tfrecord") || name.ends_with(".tfrecords") ||
      name.ends_with(".tfrecord.gz") || name.ends_with(".tfrecords.gz"))
    return inspect_records(path);
  return inspect_arrays(path);
}

}  // namespace tutti
