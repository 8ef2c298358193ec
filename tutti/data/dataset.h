#pragma once
// Dataset: numbered samples of named fields. What a data set is, not where it came from (format/,
// generate/).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/field.h"

namespace tutti::data {

/// What is wanted of a field: all of it, or elements [first, last) of one axis of the stored field.
struct FieldRows {
  int axis = -1;  ///< -1: all
  int64_t first = 0, last = 0;
};

/// A file, or a folder whose files are read together, and how many samples lie in it.
struct SamplesOfFile {
  std::string file;
  int64_t samples = 0;
};

/// Where the samples of a set come from, in their order.
struct SampleOrigins {
  std::vector<int64_t> number{};     ///< of each in the set that it was taken out of, from 0
  std::vector<std::string> files{};  ///< empty: a sample lies in no file of its own, or not known
  std::vector<int32_t> file{};       ///< of each in `files`
  /// The number of each in its file: from 0, or the line of a text, from 1. Empty: each file is one
  /// sample.
  std::vector<int64_t> row{};
};

/// A fixed set of samples, all of the same fields. Immutable after opening: all const calls may run
/// on any number of threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  /// Writes or shows all fields of sample `index` in [0, size()). `sample` was made for fields().
  /// Class numbers lie in [0, class_names.size()): checked here or when the set is opened.
  virtual void read(int64_t index, Sample& sample) const = 0;
  /// The same for ranks that share a sample: of field f only rows[f] need be there and right; in
  /// the others lies what an earlier sample left, or zeros.
  virtual void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const {
    (void)rows;
    read(index, sample);
  }
  /// Samples i and i + spacing() follow each other without a gap, and those between overlap both:
  /// windows of a text that may begin anywhere. 1: samples are apart. A Sampler takes as many as
  /// there are side by side.
  virtual int64_t spacing() const { return 1; }
  /// The files of the samples in their order, where each sample lies in one file and those of a
  /// file follow each other. Empty: it is not so, or not known.
  virtual std::vector<SamplesOfFile> files() const { return {}; }
  /// By files(), if they are known.
  virtual SampleOrigins origins() const;
  /// How samples lie in the files, as the log says it; empty: there is nothing to say.
  virtual std::string how() const { return {}; }
};

/// Where the field stands in fields(). ConfigError listing the fields there are.
size_t field_index(const Dataset& dataset, std::string_view name);
const Field& field_named(const Dataset& dataset, std::string_view name);

}  // namespace tutti::data
