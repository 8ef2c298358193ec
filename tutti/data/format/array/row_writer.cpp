#include "tutti/data/format/array/row_writer.h"

#include <cerrno>
#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/own_file.h"
#include "tutti/data/format/array/npy_arrays.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

class NpyRows final : public RowWriter {
 public:
  NpyRows(const fs::path& path, const RowArray& array)
      : path_(path), part_(path.string() + ".part"), about_(about(array)),
        left_(array.shape.at(0)) {
    row_bytes_ = static_cast<int64_t>(size_of(array.type));
    for (size_t d = 1; d < array.shape.size(); ++d) row_bytes_ *= array.shape[d];
    file_ = output_stream(part_);
    errno = 0;
    file_ << npy_start(array.type, array.shape);
    check();
  }
  ~NpyRows() override {
    std::error_code gone;
    if (!closed_) fs::remove(part_, gone), fs::remove(about_part(), gone);
  }

  void append(const void* values, int64_t rows) override {
    CHECK(rows <= left_, "{} rows where {} are missing", rows, left_);
    left_ -= rows;
    file_.write(static_cast<const char*>(values), rows * row_bytes_);
    check();
  }
  void close() override {
    CHECK(left_ == 0, "{} rows are missing", left_);
    file_.close();
    check();
    if (!about_.empty()) write_about();
    rename(part_, path_);
    if (!about_.empty()) rename(about_part(), path_.string() + ".json");
    closed_ = true;
  }

 private:
  /// Returns the JSON for attributes and columns; empty if there are none.
  static std::string about(const RowArray& array) {
    if (array.attributes.empty() && array.columns.empty()) return "";
    Json all = {{"array", array.name}, {"dimensions", array.dimensions}};
    for (const auto& [name, value] : array.attributes)
      if (value.numbers.empty())
        all["attributes"][name] = value.text;
      else
        all["attributes"][name] = value.numbers;
    for (const RowColumn& column : array.columns)
      if (column.numbers.empty())
        all[column.name] = column.words;
      else
        all[column.name] = column.numbers;
    return print_json(all, 1) + "\n";
  }

  std::string about_part() const { return path_.string() + ".json.part"; }

  /// Renamed after the array, so that a reader never finds the description of another array.
  void write_about() const {
    auto file = output_stream(about_part());
    errno = 0;
    file << about_ << std::flush;
    if (!file)
      throw IoError(fmt::format("{}: cannot be written: {}", about_part(), file_error(errno)));
  }

  static void rename(const fs::path& from, const fs::path& to) {
    std::error_code failed;
    fs::rename(from, to, failed);
    if (failed)
      throw IoError(
          fmt::format("{}: cannot be written: {}", to.string(), file_error(failed.value())));
  }

  void check() const {
    if (!file_)
      throw IoError(fmt::format("{}: cannot be written: {}", path_.string(), file_error(errno)));
  }

  fs::path path_, part_;
  std::string about_;  // describes the rows
  std::ofstream file_;
  int64_t left_, row_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<RowWriter> open_npy_rows(const fs::path& path, const RowArray& array) {
  return std::make_unique<NpyRows>(path, array);
}

void require_row_ending(const fs::path& path, const std::string& key) {
  const std::string end = path.extension().string();
  for (const char* known : {".npy", ".h5", ".hdf5", ".nc", ".nc4"})
    if (end == known) return;
  throw ConfigError(fmt::format(
      "{}: '{}' should end in .npy, .h5 or .nc, which says how it is written", key, path.string()));
}

std::unique_ptr<RowWriter> open_row_writer(const fs::path& path, const RowArray& array,
                                           const std::string& key) {
  require_row_ending(path, key);
  const std::string end = path.extension().string();
  return end == ".npy" ? open_npy_rows(path, array)
                       : open_hdf5_rows(path, array, end.starts_with(".nc"));
}

}  // namespace tutti::data
