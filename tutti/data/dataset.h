#pragma once
// A Dataset has numbered samples of named fields. This file says what a data set is; format/ and
// generate/ say where it comes from.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/field.h"

namespace tutti::data {

/// Selects the part of a field that is needed: all of it, or elements [first, last) of one axis of
/// the stored field.
struct FieldRows {
  int axis = -1;  ///< -1: all
  int64_t first = 0, last = 0;
};

/// Names a file, or a folder whose files are read together, and counts the samples in it.
struct SamplesOfFile {
  std::string file;
  int64_t samples = 0;
};

/// Says where the samples of a set come from, one element a sample, in their order.
struct SampleOrigins {
  std::vector<int64_t> number{};     ///< each sample's number in the original set, from 0
  std::vector<std::string> files{};  ///< empty: samples have no files of their own, or unknown
  std::vector<int32_t> file{};       ///< each sample's index in `files`
  /// Each sample's number in its file, from 0, or its line in a text, from 1. Empty: each file is
  /// one sample.
  std::vector<int64_t> row{};
};

/// A fixed set of samples, all with the same fields. It is immutable after opening: all const calls
/// may run on any number of threads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;
  /// Writes or shows all fields of sample `index` in [0, size()). `sample` was made for fields().
  /// Class numbers lie in [0, class_names.size()): checked here or when the set is opened.
  virtual void read(int64_t index, Sample& sample) const = 0;
  /// Does the same for ranks that share a sample: of field f only rows[f] must be written and
  /// right; the rest keeps the values of an earlier sample, or zeros.
  virtual void read_rows(int64_t index, Sample& sample, std::span<const FieldRows> rows) const {
    (void)rows;
    read(index, sample);
  }
  /// Samples i and i + spacing() follow each other without a gap, and the samples between overlap
  /// both: they are windows of a text that may begin anywhere. 1: no samples overlap. A Sampler
  /// draws only as many as fit side by side.
  virtual int64_t spacing() const { return 1; }
  /// Lists the files of the samples in order, if each sample lies in one file and the samples of a
  /// file follow each other. Empty: they do not, or it is not known.
  virtual std::vector<SamplesOfFile> files() const { return {}; }
  /// Says where the samples come from: by files(), if they are known.
  virtual SampleOrigins origins() const;
  /// Says how samples lie in the files, for the log; empty: there is nothing to say.
  virtual std::string how() const { return {}; }
};

/// Returns the field's index in fields(). Throws ConfigError that lists the existing fields.
size_t field_index(const Dataset& dataset, std::string_view name);
const Field& field_named(const Dataset& dataset, std::string_view name);

}  // namespace tutti::data
