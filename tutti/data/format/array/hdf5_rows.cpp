#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/data/format/array/hdf5_probe.h"
#include "tutti/data/format/array/hdf5_types.h"
#include "tutti/data/format/array/row_writer.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

hid_t h5_row_type(ElementType type) {
  switch (type) {
    case ElementType::f32: return H5T_IEEE_F32LE;
    case ElementType::u8: return H5T_STD_U8LE;
    case ElementType::i32: return H5T_STD_I32LE;
    default: break;
  }
  CHECK(false, "rows of {}", name_of(type));
  return -1;
}

class Hdf5Rows final : public RowWriter {
 public:
  Hdf5Rows(const fs::path& path, const RowArray& array, bool netcdf)
      : path_(path), part_(path.string() + ".part"), array_(array) {
    const std::lock_guard lock(hdf5_mutex());
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    try {
      create();
      for (const auto& [name, value] : array_.attributes)
        write_attribute(set_, name.c_str(), value);
      for (const RowColumn& column : array_.columns) write_column(column);
      if (netcdf) name_dimensions();
    } catch (...) {
      discard();
      throw;
    }
  }
  ~Hdf5Rows() override {
    const std::lock_guard lock(hdf5_mutex());
    if (file_ >= 0) discard();
  }

  void append(const void* values, int64_t rows) override {
    CHECK(row_ + rows <= array_.shape[0], "{} rows behind {} of {}", rows, row_, array_.shape[0]);
    const std::lock_guard lock(hdf5_mutex());
    std::vector<hsize_t> start(array_.shape.size(), 0),
        count(array_.shape.begin(), array_.shape.end());
    start[0] = static_cast<hsize_t>(row_);
    count[0] = static_cast<hsize_t>(rows);
    row_ += rows;
    if (rows == 0) return;
    const H5Id all(H5Dget_space(set_)),
        memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    require(H5Sselect_hyperslab(all, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
    require(H5Dwrite(set_, h5_row_type(array_.type), memory, all, H5P_DEFAULT, values));
  }
  void close() override {
    CHECK(row_ == array_.shape[0], "{} rows of {}", row_, array_.shape[0]);
    const std::lock_guard lock(hdf5_mutex());
    H5Dclose(std::exchange(set_, -1));
    require(H5Fclose(std::exchange(file_, -1)));
    std::error_code failed;
    fs::rename(part_, path_, failed);
    if (failed)
      throw IoError(fmt::format("{}: cannot be written: {}", path_.string(), failed.message()));
  }

 private:
  /// Checks the result of an HDF5 call: negative means failure.
  hid_t require(hid_t given) const {
    if (given < 0)
      throw IoError(fmt::format(
          "{}: cannot be written: {}; check the space left and the permissions of the folder",
          path_.string(), h5_reason()));
    return given;
  }
  void discard() {
    if (set_ >= 0) H5Dclose(std::exchange(set_, -1));
    if (file_ >= 0) H5Fclose(std::exchange(file_, -1));
    std::error_code gone;
    fs::remove(part_, gone);
  }

  void create() {
    const H5Id creation(H5Pcreate(H5P_FILE_CREATE)), access(H5Pcreate(H5P_FILE_ACCESS)),
        layout(H5Pcreate(H5P_DATASET_CREATE));
    // NetCDF-4 needs the order of dimensions and variables.
    constexpr unsigned kOrder = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    H5Pset_link_creation_order(creation, kOrder);
    H5Pset_attr_creation_order(layout, kOrder);
    H5Pset_obj_track_times(layout, false);  // equal arrays make equal files
    H5Pset_file_locking(access, false, true);
    ::close(open_output(part_, O_WRONLY | O_CREAT));  // HDF5's library would follow anybody's links
    file_ = require(H5Fcreate(part_.c_str(), H5F_ACC_TRUNC, creation, access));
    const std::vector<hsize_t> extents(array_.shape.begin(), array_.shape.end());
    const H5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
    set_ = require(H5Dcreate2(file_, array_.name.c_str(), h5_row_type(array_.type), space,
                              H5P_DEFAULT, layout, H5P_DEFAULT));
  }

  void write_attribute(hid_t object, const char* name, const ArrayAttribute& value) const {
    if (value.numbers.empty()) return write_text(object, name, value.text);
    const hsize_t count = value.numbers.size();
    const H5Id space(count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr)),
        attribute(
            require(H5Acreate2(object, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT)));
    require(H5Awrite(attribute, H5T_NATIVE_DOUBLE, value.numbers.data()));
  }

  void write_column(const RowColumn& column) const {
    const bool numbers = column.words.empty();
    const hsize_t count = numbers ? column.numbers.size() : column.words.size();
    CHECK(static_cast<int64_t>(count) == array_.shape[0], "{} of {} rows have '{}'", count,
          array_.shape[0], column.name);
    const H5Id type(H5Tcopy(numbers ? H5T_STD_I64LE : H5T_C_S1)),
        space(H5Screate_simple(1, &count, nullptr)), layout(H5Pcreate(H5P_DATASET_CREATE));
    if (!numbers) {
      H5Tset_size(type, H5T_VARIABLE);
      H5Tset_cset(type, H5T_CSET_UTF8);
    }
    H5Pset_obj_track_times(layout, false);
    H5Pset_attr_creation_order(layout, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    const H5Id set(require(
        H5Dcreate2(file_, column.name.c_str(), type, space, H5P_DEFAULT, layout, H5P_DEFAULT)));
    std::vector<const char*> words;
    for (const std::string& word : column.words) words.push_back(word.c_str());
    const void* values = numbers ? static_cast<const void*>(column.numbers.data()) : words.data();
    const hid_t memory = numbers ? H5T_NATIVE_INT64 : static_cast<hid_t>(type);
    if (count > 0) require(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    if (!column.meaning.empty()) write_text(set, "long_name", column.meaning);
  }

  void write_text(hid_t object, const char* name, const std::string& text) const {
    const H5Id type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
    H5Tset_size(type, text.size() + 1);
    if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) > 127; }))
      H5Tset_cset(type, H5T_CSET_UTF8);
    const H5Id attribute(require(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)));
    require(H5Awrite(attribute, type, text.c_str()));
  }

  /// Writes a dimension without a variable: a data set without values.
  hobj_ref_t write_scale(size_t d) const {
    const hsize_t extent = static_cast<hsize_t>(array_.shape[d]);
    const H5Id space(H5Screate_simple(1, &extent, nullptr)), layout(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(layout, false);
    const H5Id scale(require(H5Dcreate2(file_, array_.dimensions[d].c_str(), H5T_IEEE_F32BE, space,
                                        H5P_DEFAULT, layout, H5P_DEFAULT)));
    write_text(scale, "CLASS", "DIMENSION_SCALE");
    write_text(scale, "NAME",
               fmt::format("This is a netCDF dimension but not a netCDF variable.{:10d}", extent));
    const int number = static_cast<int>(d);
    const H5Id one(H5Screate(H5S_SCALAR)),
        id(require(
            H5Acreate2(scale, "_Netcdf4Dimid", H5T_STD_I32LE, one, H5P_DEFAULT, H5P_DEFAULT)));
    require(H5Awrite(id, H5T_NATIVE_INT, &number));
    // The data sets that use the dimension, and at which index: HDF5's dimension scales, section 3.
    struct Use {
      hobj_ref_t set;
      int dimension;
    };
    std::vector<Use> used;
    const auto add = [&](const std::string& set) {
      used.push_back({.set = {}, .dimension = number});
      require(H5Rcreate(&used.back().set, file_, set.c_str(), H5R_OBJECT, -1));
    };
    add(array_.name);
    for (const RowColumn& column : array_.columns)
      if (d == 0) add(column.name);
    const hsize_t uses = used.size();
    const H5Id pair(H5Tcreate(H5T_COMPOUND, sizeof(Use))),
        list(H5Screate_simple(1, &uses, nullptr));
    H5Tinsert(pair, "dataset", HOFFSET(Use, set), H5T_STD_REF_OBJ);
    H5Tinsert(pair, "dimension", HOFFSET(Use, dimension), H5T_NATIVE_INT);
    const H5Id attribute(
        require(H5Acreate2(scale, "REFERENCE_LIST", pair, list, H5P_DEFAULT, H5P_DEFAULT)));
    require(H5Awrite(attribute, pair, used.data()));
    hobj_ref_t reference{};
    require(H5Rcreate(&reference, file_, array_.dimensions[d].c_str(), H5R_OBJECT, -1));
    return reference;
  }

  void name_dimensions() const {
    CHECK(array_.dimensions.size() == array_.shape.size(), "{} names of {} dimensions",
          array_.dimensions.size(), array_.shape.size());
    std::vector<hobj_ref_t> scales;
    for (size_t d = 0; d < array_.shape.size(); ++d) scales.push_back(write_scale(d));
    list_dimensions(set_, scales);
    for (const RowColumn& column : array_.columns)
      list_dimensions(H5Id(require(H5Dopen2(file_, column.name.c_str(), H5P_DEFAULT))),
                      std::span(scales).first(1));
  }

  void list_dimensions(hid_t set, std::span<hobj_ref_t> scales) const {
    std::vector<hvl_t> lists;
    for (hobj_ref_t& scale : scales) lists.push_back({.len = 1, .p = &scale});
    const hsize_t count = lists.size();
    const H5Id type(H5Tvlen_create(H5T_STD_REF_OBJ)), space(H5Screate_simple(1, &count, nullptr)),
        attribute(
            require(H5Acreate2(set, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT)));
    require(H5Awrite(attribute, type, lists.data()));
  }

  fs::path path_, part_;
  RowArray array_;
  hid_t file_ = -1, set_ = -1;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RowWriter> open_hdf5_rows(const fs::path& path, const RowArray& array,
                                          bool netcdf) {
  return std::make_unique<Hdf5Rows>(path, array, netcdf);
}

}  // namespace tutti::data
