// Reads array files as samples.

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/log.h"
#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/arrays/sample_file.h"

namespace tutti::data {
namespace {

/// An array that a field takes values from.
struct SourceArray {
  size_t index = 0;  ///< index in the file
  ValueCoding coding{};
};

/// The meaning of a line of data.fields in one file.
struct FieldSource {
  FieldLine line;
  std::vector<SourceArray> arrays;
  std::vector<int64_t> extents;  ///< extents of a sample in an array, without the counted axis
  int64_t samples = 0;           ///< 0: every sample has the same values
  bool decoded = false;          ///< values are computed: the field is f32, stored types may differ
};

/// Reads the headers: finds the arrays of a line, and the extents of their samples.
class SourceReader {
 public:
  SourceReader(const ArrayFile& file, const FieldLine& line) : file_(file) { source_.line = line; }

  FieldSource read() {
    for (const std::string& name : source_.line.arrays) add(name);
    if (source_.line.type && *source_.line.type != info(0).type)
      refuse(fmt::format("holds {}, not the {} of 'as' in data.fields", name_of(info(0).type),
                         name_of(*source_.line.type)));
    check_missing();
    return std::move(source_);
  }

 private:
  const ArrayInfo& info(size_t i) const { return file_.arrays()[source_.arrays[i].index]; }
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadFile("{}: the array '{}' {} {}", file_.name(),
                  file_.arrays()[source_.arrays.back().index].name,
                  fmt::format("[{}]", fmt::join(info(source_.arrays.size() - 1).shape, ", ")), why);
  }

  void add(const std::string& name) {
    const size_t index = file_.find(name);
    source_.arrays.push_back({.index = index, .coding = value_coding(file_.arrays()[index])});
    const ArrayInfo& own = file_.arrays()[index];
    warn_of_attributes(own);
    if (source_.arrays.size() > 1 && own.shape != info(0).shape)
      refuse(
          fmt::format("is to be stacked on '{}' [{}]: arrays of one field must have the same shape",
                      info(0).name, fmt::join(info(0).shape, ", ")));
    source_.decoded |= source_.arrays.back().coding.scaled() || own.type != info(0).type;
    if (source_.arrays.size() == 1) find_samples(own);
  }

  /// Warns once for arrays of one name, since the files of a set have the same layout.
  void warn_of_attributes(const ArrayInfo& own) const {
    const std::string names = fmt::format("{}", fmt::join(passed_over(own), ", "));
    if (!names.empty() && first_warning({}, fmt::format("{} of {}", names, own.name)))
      log::warn_once(
          "{}: the array '{}': attributes that say no values of its type are passed over: {}",
          file_.name(), own.name, names);
  }

  void find_samples(const ArrayInfo& own) {
    source_.extents = own.shape;
    switch (source_.line.place) {
      case FieldLine::Place::unset: CHECK(false, "places are settled");
      case FieldLine::Place::whole: break;
      case FieldLine::Place::axis: {
        const int axis = source_.line.axis;
        if (axis >= std::ssize(own.shape))
          refuse(fmt::format("has no axis {} to count samples along", axis));
        source_.samples = own.shape[static_cast<size_t>(axis)];
        source_.extents.erase(source_.extents.begin() + axis);
        break;
      }
      case FieldLine::Place::cut: find_blocks(own); break;
    }
    if (std::ssize(source_.extents) >= Shape::kMaxRank)
      refuse(fmt::format("has samples of too many axes; {} is the most", Shape::kMaxRank - 1));
    if (std::ranges::find(source_.extents, 0) != source_.extents.end() ||
        (source_.line.place != FieldLine::Place::whole && source_.samples == 0))
      refuse("holds no element");
  }

  void find_blocks(const ArrayInfo& own) {
    const std::vector<int64_t>& cut = source_.line.cut;
    if (cut.size() > own.shape.size())
      refuse(fmt::format("has fewer axes than 'cut' has extents ({})", fmt::join(cut, " ")));
    source_.samples = 1;
    for (size_t i = 0; i < cut.size(); ++i) {
      if (own.shape[i] % cut[i] != 0)
        refuse(fmt::format(
            "cannot be cut into blocks of {}: axis {} has {} elements, which do not divide by {}",
            fmt::join(cut, " "), i, own.shape[i], cut[i]));
      source_.samples *= own.shape[i] / cut[i];
      source_.extents[i] = cut[i];
    }
  }

  void check_missing() const {
    const ElementType type = info(0).type;
    const std::optional<double>& missing = source_.line.missing;
    if (!missing || source_.decoded) return;
    if (type == ElementType::f16)
      refuse("holds f16, in which missing values cannot be replaced: convert it to f32");
    if (!stored_number(type, *missing))
      refuse(fmt::format("holds {}, which cannot be 'missing {}'", name_of(type), *missing));
  }

  const ArrayFile& file_;
  FieldSource source_;
};

class ArraySamples final : public SampleFile {
 public:
  ArraySamples(ArrayFile file, const std::vector<FieldLine>& lines,
               std::shared_ptr<ChunkCache> cache)
      : file_(std::move(file)), cache_(std::move(cache)) {
    as_described([&] {
      for (const FieldLine& line : lines) {
        sources_.push_back(SourceReader(file_, line).read());
        fields_.push_back(field_of(sources_.back()));
        count_samples(sources_.back());
      }
    });
    if (samples_ == 0) samples_ = 1;
  }

  const std::string& name() const override { return file_.name(); }
  const std::vector<Field>& fields() const override { return fields_; }
  int64_t samples() const override { return samples_; }
  int64_t held_bytes() const override { return file_.held_bytes(); }

  void read(int64_t sample, Sample& to, std::span<const FieldRows> rows) const override {
    for (size_t f = 0; f < fields_.size(); ++f) {
      const FieldSource& source = sources_[f];
      const Slab slab = slab_of_sample(source, sample);
      const std::vector<Piece> pieces =
          pieces_of(source, slab, f, rows.empty() ? FieldRows() : rows[f]);
      const bool shown = show(source, slab, f, to);
      auto* out = shown ? nullptr : static_cast<uint8_t*>(to.own(f));
      for (size_t i = 0; i < source.arrays.size(); ++i)
        for (const Piece& piece : pieces) {
          const int64_t first = static_cast<int64_t>(i) * slab.elements() + piece.first;
          if (!shown)
            copy(source, i, piece.slab, sample,
                 out + static_cast<size_t>(first) * size_of(fields_[f].element));
          check_field_values(fields_[f], to.at(f), {first, first + piece.slab.elements()},
                             what(source, sample));
        }
    }
  }

 private:
  const ArrayInfo& info(const FieldSource& source, size_t i) const {
    return file_.arrays()[source.arrays[i].index];
  }
  std::string what(const FieldSource& source, int64_t sample) const {
    return source.samples == 0 ? file_.name() : fmt::format("{}, sample {}", file_.name(), sample);
  }

  Field field_of(const FieldSource& source) const {
    const ArrayInfo& first = info(source, 0);
    std::vector<int64_t> extents = source.extents;
    if (source.arrays.size() > 1)
      extents.insert(extents.begin(), static_cast<int64_t>(source.arrays.size()));
    if (source.line.shape) {
      int64_t elements = 1;
      for (const int64_t extent : extents) elements *= extent;
      extents = shaped(*source.line.shape, elements,
                       fmt::format("{}: the array '{}'", file_.name(), first.name));
    }
    if (std::ssize(extents) >= Shape::kMaxRank)
      throw BadFile("{}: samples of the field '{}' have {} axes; {} is the most", file_.name(),
                    source.line.field, extents.size(), Shape::kMaxRank - 1);
    return {.name = source.line.field,
            .element = source.decoded ? ElementType::f32 : first.type,
            .shape = Shape(std::span<const int64_t>(extents)),
            .class_names = source.line.class_names,
            .unit = unit_of(source)};
  }

  /// Returns the unit that all of its arrays share; empty where they differ.
  std::string unit_of(const FieldSource& source) const {
    const auto of = [&](size_t i) {
      const auto& attributes = info(source, i).attributes;
      const auto units = attributes.find("units");
      return units == attributes.end() ? std::string() : units->second.text;
    };
    for (size_t i = 1; i < source.arrays.size(); ++i)
      if (of(i) != of(0)) return "";
    return of(0);
  }

  void count_samples(const FieldSource& source) {
    if (source.samples == 0) return;
    if (samples_ != 0 && source.samples != samples_)
      throw BadFile(
          "{}: the lengths differ: the field '{}' has {} samples, '{}' has {}: all fields must "
          "have as many; correct the file, or 'axis', 'cut' or 'whole' in data.fields",
          file_.name(), source.line.field, source.samples, counted_, samples_);
    samples_ = source.samples;
    counted_ = source.line.field;
  }

  Slab slab_of_sample(const FieldSource& source, int64_t sample) const {
    Slab slab = Slab::all(info(source, 0));
    if (source.line.place == FieldLine::Place::axis) {
      slab.start[static_cast<size_t>(source.line.axis)] = sample;
      slab.count[static_cast<size_t>(source.line.axis)] = 1;
    } else if (source.line.place == FieldLine::Place::cut) {
      for (size_t i = source.line.cut.size(); i-- > 0;) {
        const int64_t across = slab.count[i] / source.line.cut[i];
        slab.count[i] = source.line.cut[i];
        slab.start[i] = sample % across * source.line.cut[i];
        sample /= across;
      }
    }
    return slab;
  }

  /// A part of an array that is contiguous in the field, starting at element `first` among the
  /// array's elements in the field.
  struct Piece {
    Slab slab;
    int64_t first = 0;
  };

  /// Returns the whole sample, or its requested rows if they form only a few pieces.
  std::vector<Piece> pieces_of(const FieldSource& source, const Slab& slab, size_t f,
                               const FieldRows& rows) const {
    constexpr int64_t kMostPieces = 64;
    int axis = rows.axis - (source.arrays.size() > 1 ? 1 : 0);  // axis of a sample in the array
    if (axis < 0) return blocks_of(source, slab);
    if (source.line.shape) return {{slab}};
    if (source.line.place == FieldLine::Place::axis && axis >= source.line.axis) ++axis;
    const auto at = static_cast<size_t>(axis);
    CHECK(at < slab.count.size() && rows.first >= 0 && rows.last <= slab.count[at],
          "rows {} to {} of axis {} of {}", rows.first, rows.last, rows.axis,
          fields_[f].to_string());
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < slab.count.size(); ++i)
      (i < at ? outer : inner) *= i == at ? 1 : slab.count[i];
    if (outer > kMostPieces) return {{slab}};
    std::vector<Piece> pieces;
    for (int64_t o = 0; o < outer && rows.first < rows.last; ++o) {
      Piece piece{slab, (o * slab.count[at] + rows.first) * inner};
      piece.slab.start[at] += rows.first;
      piece.slab.count[at] = rows.last - rows.first;
      for (int64_t i = axis, rest = o; i-- > 0;) {
        const auto outside = static_cast<size_t>(i);
        piece.slab.start[outside] += rest % slab.count[outside];
        piece.slab.count[outside] = 1;
        rest /= slab.count[outside];
      }
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  /// Splits large slabs into blocks, so that values are checked while they are in the cache.
  std::vector<Piece> blocks_of(const FieldSource& source, const Slab& slab) const {
    constexpr int64_t kBlock = 256 << 10;  // bytes
    const auto element = static_cast<int64_t>(size_of(info(source, 0).type));
    const bool in_order = std::ranges::all_of(
        source.arrays, [&](const SourceArray& array) { return file_.in_order(array.index); });
    size_t axis = 0;
    while (axis + 1 < slab.count.size() && slab.count[axis] == 1) ++axis;
    if (!in_order || slab.count.empty() || slab.elements() * element <= 2 * kBlock) return {{slab}};
    const int64_t inner = slab.elements() / slab.count[axis],
                  step = std::max<int64_t>(kBlock / (inner * element), 1);
    std::vector<Piece> pieces;
    for (int64_t at = 0; at < slab.count[axis]; at += step) {
      Piece piece{slab, at * inner};
      piece.slab.start[axis] += at;
      piece.slab.count[axis] = std::min(step, slab.count[axis] - at);
      pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  /// Shows values without a copy if they are in memory unchanged.
  bool show(const FieldSource& source, const Slab& slab, size_t f, Sample& to) const {
    if (source.decoded || source.arrays.size() > 1 || source.line.missing ||
        !is_plain(source.arrays[0].coding))
      return false;
    const void* bytes = file_.view(source.arrays[0].index, slab);
    if (bytes != nullptr) to.show(f, bytes, file_.keeper());
    return bytes != nullptr;
  }

  void copy(const FieldSource& source, size_t i, const Slab& slab, int64_t sample,
            uint8_t* out) const {
    const SourceArray& array = source.arrays[i];
    const ElementType type = info(source, i).type;
    const int64_t count = slab.elements();
    const std::optional<double>& missing = source.line.missing;
    int64_t absent = -1;
    if (source.decoded) {
      std::vector<uint8_t> stored(static_cast<size_t>(count) * size_of(type));
      file_.read(array.index, slab, stored.data(), cache_.get());
      absent = decode_values(array.coding, type, stored.data(), count, missing,
                             reinterpret_cast<float*>(out));
    } else {
      file_.read(array.index, slab, out, cache_.get());
      if (missing || array.coding.masks())
        absent = replace_missing(array.coding, type, out, count, missing);
    }
    if (absent >= 0) refuse_missing(source, i, slab, absent, sample);
  }

  [[noreturn]] void refuse_missing(const FieldSource& source, size_t array, const Slab& slab,
                                   int64_t at, int64_t sample) const {
    std::vector<int64_t> index(slab.count.size());
    for (size_t d = index.size(); d-- > 0; at /= slab.count[d])
      index[d] = slab.start[d] + at % slab.count[d];
    throw BadFile(
        "{}: the array '{}' has a missing value (NaN, a fill value, or one outside its valid "
        "range) at [{}]: 'missing V' in the line of the field '{}' in data.fields puts a number "
        "there; or leave the sample out",
        what(source, sample), info(source, array).name, fmt::join(index, ", "), source.line.field);
  }

  ArrayFile file_;
  std::shared_ptr<ChunkCache> cache_;
  std::vector<FieldSource> sources_;
  std::vector<Field> fields_;
  int64_t samples_ = 0;
  std::string counted_;  // the field that determines the count
};

}  // namespace

std::shared_ptr<const SampleFile> array_samples(ArrayFile file, const std::vector<FieldLine>& lines,
                                                std::shared_ptr<ChunkCache> cache) {
  return std::make_shared<ArraySamples>(std::move(file), lines, std::move(cache));
}

}  // namespace tutti::data
