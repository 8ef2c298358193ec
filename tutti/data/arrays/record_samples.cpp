// Reads files of TFRecords as samples: each record is a tf.Example, each line takes a feature.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "tutti/data/arrays/sample_file.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"

namespace tutti::data {
namespace {

using Kind = TfFeature::Kind;

const TfFeature& feature_named(const std::vector<TfFeature>& features, const std::string& name,
                               const std::string& what) {
  const auto found = std::ranges::find(features, name, &TfFeature::name);
  if (found != features.end()) return *found;
  std::string names;
  for (const TfFeature& feature : features) names += (names.empty() ? "" : ", ") + feature.name;
  throw BadFile("{}: there is no feature '{}', only: {}", what, name, names);
}

/// Returns the natural type of a feature's values.
ElementType own_type(const FieldLine& line, const TfFeature& feature, const std::string& what) {
  switch (feature.kind) {
    case Kind::floats: return ElementType::f32;
    case Kind::integers: return ElementType::i64;
    case Kind::bytes:
      if (feature.bytes.empty()) break;
      throw BadFile(
          "{}: the feature '{}' holds {} bytes, whose type only 'as' can say: for example \"{}: "
          "from {} as f32 ...\" in data.fields",
          what, feature.name, feature.bytes[0].size(), line.field, feature.name);
    case Kind::none: break;
  }
  throw BadFile("{}: the feature '{}' has no value", what, feature.name);
}

void check_line(const FieldLine& line, const std::string& file) {
  const auto refuse = [&](std::string_view why, std::string_view instead) {
    throw ConfigError(
        fmt::format("data.fields: the line of '{}' {}, and {} holds TFRecords, where "
                    "each record is a sample: {}",
                    line.field, why, file, instead));
  };
  if (line.place == FieldLine::Place::axis || line.place == FieldLine::Place::cut)
    refuse("has 'axis' or 'cut'", "leave it out");
  if (line.arrays.size() > 1)
    refuse("stacks several arrays",
           "write the records with one feature that has all of them, or convert them to HDF5 or "
           ".npz, whose arrays are stacked");
  if (line.missing)
    refuse("has 'missing'",
           "replace the values when the records are written (numpy.nan_to_num), or convert them to "
           "HDF5 or .npy, for which 'missing' is read");
}

/// Returns memory for a record, reusing memory of this thread that nobody shows any more:
/// allocating and freeing megabytes for each record costs more than reading it. A reader needs
/// three at a time: the sample made last, the record being read, and the record that opening a file
/// has read.
std::shared_ptr<std::vector<uint8_t>> record_memory() {
  thread_local std::array<std::shared_ptr<std::vector<uint8_t>>, 3> had;
  for (std::shared_ptr<std::vector<uint8_t>>& one : had) {
    if (!one) return one = std::make_shared<std::vector<uint8_t>>();
    if (one.use_count() > 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last use, in any thread
    return one;
  }
  return std::make_shared<std::vector<uint8_t>>();
}

class RecordSamples final : public SampleFile {
 public:
  RecordSamples(const std::filesystem::path& path, const std::vector<FieldLine>& lines)
      : lines_(lines), file_(open_tfrecords(path)), name_(path.string()) {
    if (file_.places.empty()) throw BadFile("{}: holds no record, expected samples", name_);
    auto memory = record_memory();
    const std::string what = this->what(0);
    const std::vector<TfFeature> features = parse_example(file_.record(0, *memory), what);
    as_described([&] {
      for (const FieldLine& line : lines_) {
        check_line(line, name_);
        fields_.push_back(field_of(line, feature_named(features, line.arrays[0], what), what));
      }
    });
    if (!file_.inflated) first_ = std::move(memory);
  }

  const std::string& name() const override { return name_; }
  const std::vector<Field>& fields() const override { return fields_; }
  int64_t samples() const override { return std::ssize(file_.places); }
  int64_t held_bytes() const override {
    if (file_.inflated) return file_.bytes.size();
    const std::lock_guard lock(mutex_);
    return first_ ? std::ssize(*first_) : 0;
  }

  void read(int64_t sample, Sample& to, std::span<const FieldRows>) const override {
    const std::string what = this->what(sample);
    std::shared_ptr<std::vector<uint8_t>> memory = sample == 0 ? take_first() : nullptr;
    const bool there = memory != nullptr;
    if (!there) memory = record_memory();
    const std::vector<TfFeature> features = parse_example(
        there ? std::span<const uint8_t>(*memory) : file_.record(sample, *memory), what);
    const std::shared_ptr<const void> keeper = file_.inflated
                                                   ? std::make_shared<FileBytes>(file_.bytes)
                                                   : std::shared_ptr<const void>(memory);
    for (size_t f = 0; f < fields_.size(); ++f) {
      put(feature_named(features, lines_[f].arrays[0], what), f, to, keeper, what);
      check_field_values(fields_[f], to.at(f), {0, fields_[f].elements()}, what);
    }
  }

 private:
  /// Takes the record that opening has read. If each file is one record, it would be read twice.
  std::shared_ptr<std::vector<uint8_t>> take_first() const {
    const std::lock_guard lock(mutex_);
    return std::exchange(first_, nullptr);
  }

  std::string what(int64_t record) const { return fmt::format("{}, record {}", name_, record); }

  Field field_of(const FieldLine& line, const TfFeature& feature, const std::string& what) const {
    const ElementType type = line.type ? *line.type : own_type(line, feature, what);
    const int64_t elements =
        feature.kind == Kind::bytes && feature.bytes.size() == 1
            ? std::ssize(feature.bytes[0]) / static_cast<int64_t>(size_of(type))
            : static_cast<int64_t>(feature.values());
    std::vector<int64_t> extents;
    if (line.shape)
      extents =
          shaped(*line.shape, elements, fmt::format("{}: the feature '{}'", what, feature.name));
    else if (elements != 1)
      extents = {elements};
    if (elements == 0) throw BadFile("{}: the feature '{}' has no value", what, feature.name);
    return {.name = line.field,
            .element = type,
            .shape = Shape(std::span<const int64_t>(extents)),
            .class_names = line.class_names};
  }

  [[noreturn]] static void refuse_count(const TfFeature& feature, size_t bytes, const Field& field,
                                        const std::string& what) {
    throw BadFile("{}: the feature '{}' has {} bytes, expected {} for {}", what, feature.name,
                  bytes, field.bytes(), field.to_string());
  }

  void put(const TfFeature& feature, size_t f, Sample& to,
           const std::shared_ptr<const void>& keeper, const std::string& what) const {
    const Field& field = fields_[f];
    switch (feature.kind) {
      case Kind::bytes: return put_bytes(feature, f, to, keeper, what);
      case Kind::floats:
        if (field.element != ElementType::f32) break;
        if (feature.floats.size() * 4 != field.bytes())
          refuse_count(feature, feature.floats.size() * 4, field, what);
        std::memcpy(to.own(f), feature.floats.data(), field.bytes());
        return;
      case Kind::integers:
        if (!is_integer(field.element)) break;
        if (std::ssize(feature.integers) != field.elements())
          refuse_count(feature, feature.integers.size() * size_of(field.element), field, what);
        return put_integers(feature, field, to.own(f), what);
      case Kind::none: break;
    }
    throw BadFile("{}: the feature '{}' holds no {}", what, feature.name, name_of(field.element));
  }

  void put_bytes(const TfFeature& feature, size_t f, Sample& to,
                 const std::shared_ptr<const void>& keeper, const std::string& what) const {
    const Field& field = fields_[f];
    if (feature.bytes.size() != 1)
      throw BadFile("{}: the feature '{}' has {} texts, expected one", what, feature.name,
                    feature.bytes.size());
    const std::span<const uint8_t> bytes = feature.bytes[0];
    if (bytes.size() != field.bytes()) refuse_count(feature, bytes.size(), field, what);
    const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % size_of(field.element) == 0;
    if (aligned) return to.show(f, bytes.data(), keeper);
    std::memcpy(to.own(f), bytes.data(), bytes.size());
  }

  /// Writes integers in a narrower type if 'as' asks for one.
  static void put_integers(const TfFeature& feature, const Field& field, void* out,
                           const std::string& what) {
    with_elements(field.element, out, [&](const auto* place) {
      using T = std::remove_cvref_t<decltype(*place)>;
      if constexpr (std::is_integral_v<T>) {
        auto* to = static_cast<T*>(out);
        for (const int64_t value : feature.integers) {
          if (!std::in_range<T>(value))
            throw BadFile("{}: the feature '{}' holds {}, which is no {}", what, feature.name,
                          value, name_of(field.element));
          *to++ = static_cast<T>(value);
        }
      }
    });
  }

  std::vector<FieldLine> lines_;
  TfRecordFile file_;
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<std::vector<uint8_t>> first_;  // guarded by mutex_
  std::vector<Field> fields_;
};

}  // namespace

std::shared_ptr<const SampleFile> record_samples(const std::filesystem::path& path,
                                                 const std::vector<FieldLine>& lines) {
  return std::make_shared<RecordSamples>(path, lines);
}

bool is_record_file(const std::filesystem::path& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return false;
  const std::string name = path.filename().string();
  for (const std::string_view end : {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"})
    if (name.ends_with(end)) return true;
  return is_tfrecord(path);
}

}  // namespace tutti::data
