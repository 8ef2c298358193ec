#pragma once
// A SampleFile is one open file of a data set of array files, read as samples.

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

/// Headers were checked at opening. Const calls may run on any number of threads.
class SampleFile {
 public:
  virtual ~SampleFile() = default;

  virtual const std::string& name() const = 0;
  /// Returns the fields, one per line in their order, without statistics.
  virtual const std::vector<Field>& fields() const = 0;
  virtual int64_t samples() const = 0;
  /// Writes or shows all fields of a sample. BadFile naming file and sample where a value is
  /// missing, no number or no class, or the data are damaged. `rows`: the part needed of each field
  /// (Dataset::read_rows()); empty: all.
  virtual void read(int64_t sample, Sample& to, std::span<const FieldRows> rows) const = 0;
  /// Returns the bytes of data that it keeps in memory.
  virtual int64_t held_bytes() const = 0;
};

/// A file does not hold what the lines of data.fields say: one of the two is wrong.
class Misfit : public BadFile {
  using BadFile::BadFile;
};
template <class Read>
auto as_described(Read read) {
  try {
    return read();
  } catch (const UnreadableArray&) {
    throw;
  } catch (const BadFile& error) {
    throw Misfit(error.what());
  }
}

/// Reads an array file (array_samples.cpp). `lines` must have settled places (array_set.cpp).
/// `cache` is for HDF5's chunks. NotAsSaid.
std::shared_ptr<const SampleFile> array_samples(ArrayFile file, const std::vector<FieldLine>& lines,
                                                std::shared_ptr<ChunkCache> cache);

/// Reads a file of TFRecords, each a tf.Example and a sample (record_samples.cpp). A gzip file is
/// inflated completely. BadFile if a record is damaged; NotAsSaid by the first one.
std::shared_ptr<const SampleFile> record_samples(const std::filesystem::path& path,
                                                 const std::vector<FieldLine>& lines);
/// Says whether a file has TFRecords, by the beginning of its content, or, if that is inconclusive,
/// by its name.
bool is_record_file(const std::filesystem::path& path);

/// Returns the extents of 'as' for a sample of `elements` elements, with `?` replaced. BadFile
/// beginning with `what` if they do not fit.
std::vector<int64_t> shaped(const std::vector<int64_t>& as, int64_t elements,
                            const std::string& what);

/// The elements [first, last) of a row-major array.
struct Elements {
  int64_t first = 0, last = 0;
};

/// Checks these values of a sample. For the first bad one, beginning with `what`: BadFile if it is
/// not finite, ConfigError if it is no class, since `classes` may be wrong.
void check_field_values(const Field& field, const void* values, const Elements& of,
                        const std::string& what);

}  // namespace tutti::data
