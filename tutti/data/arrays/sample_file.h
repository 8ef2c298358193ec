#pragma once
// SampleFile: one open file of a data set of array files, as samples.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"
#include "tutti/data/format/array/array_file.h"
#include "tutti/data/format/array/chunk_cache.h"

namespace tutti::data {

/// Headers were checked when it was opened. Const calls may run on any number of threads.
class SampleFile {
 public:
  virtual ~SampleFile() = default;

  virtual const std::string& name() const = 0;
  /// One a line, in their order; without statistics.
  virtual const std::vector<Field>& fields() const = 0;
  virtual int64_t samples() const = 0;
  /// Writes or shows all fields of a sample. BadFile naming file and sample where a value is
  /// missing, no number or no class, or the data are damaged.
  /// `rows`: of each field, what is wanted of it (Dataset::read_rows()); empty: all.
  virtual void read(int64_t sample, Sample& to, std::span<const FieldRows> rows) const = 0;
  /// Bytes of data that it keeps in memory.
  virtual int64_t held_bytes() const = 0;
};

/// A file does not hold what the lines of data.fields say: one of the two is wrong.
class NotAsSaid : public BadFile {
  using BadFile::BadFile;
};
template <class Read>
auto as_said(Read read) {
  try {
    return read();
  } catch (const UnreadableArray&) {
    throw;
  } catch (const BadFile& error) {
    throw NotAsSaid(error.what());
  }
}

/// An array file (array_samples.cpp). `lines`: places settled (sample_places.h). `cache`: of HDF5's
/// chunks. NotAsSaid.
std::shared_ptr<const SampleFile> array_samples(ArrayFile file, const std::vector<FieldLine>& lines,
                                                std::shared_ptr<ChunkCache> cache);

/// A file of TFRecords, each a tf.Example and a sample (record_samples.cpp). A gzip file is
/// inflated whole. BadFile where a record is damaged; NotAsSaid by the first one.
std::shared_ptr<const SampleFile> record_samples(const std::filesystem::path& path,
                                                 const std::vector<FieldLine>& lines);
/// Whether a file is of TFRecords: by the beginning of its content, or where that says nothing, by
/// its name.
bool is_record_file(const std::filesystem::path& path);

/// `elements` of one sample in the extents that 'as' says, `?` worked out. BadFile beginning with
/// `what` where they do not fit.
std::vector<int64_t> shaped(const std::vector<int64_t>& as, int64_t elements,
                            const std::string& what);

/// Elements [first, last) of a row-major array.
struct Elements {
  int64_t first = 0, last = 0;
};

/// For the first of these values of a sample, beginning with `what`: BadFile where it is not
/// finite, ConfigError where it is no class, for `classes` may be what is wrong.
void check_field_values(const Field& field, const void* values, const Elements& of,
                        const std::string& what);

}  // namespace tutti::data
