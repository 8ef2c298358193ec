#include <cerrno>
#include <mutex>

#include "tutti/base/own_file.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/array/hdf5_probe.h"
#include "tutti/data/format/array/hdf5_types.h"

namespace tutti::data {
namespace {

/// Returns the result of an HDF5 call; throws IoError if it is negative, which means failure.
hid_t h5_done(hid_t result, const std::string& file, const std::string& doing) {
  if (result < 0) throw IoError(fmt::format("{}: HDF5 cannot {}: too little memory?", file, doing));
  return result;
}

/// Returns a new little-endian HDF5 type, which the caller closes.
hid_t h5_type(ElementType type) {
  switch (type) {
    case ElementType::boolean: {  // as in h5py
      const hid_t made = H5Tenum_create(H5T_STD_I8LE);
      int8_t value = 0;
      H5Tenum_insert(made, "FALSE", &value);
      value = 1;
      H5Tenum_insert(made, "TRUE", &value);
      return made;
    }
    case ElementType::i8: return H5Tcopy(H5T_STD_I8LE);
    case ElementType::u8: return H5Tcopy(H5T_STD_U8LE);
    case ElementType::i16: return H5Tcopy(H5T_STD_I16LE);
    case ElementType::u16: return H5Tcopy(H5T_STD_U16LE);
    case ElementType::i32: return H5Tcopy(H5T_STD_I32LE);
    case ElementType::u32: return H5Tcopy(H5T_STD_U32LE);
    case ElementType::i64: return H5Tcopy(H5T_STD_I64LE);
    case ElementType::u64: return H5Tcopy(H5T_STD_U64LE);
    case ElementType::f32: return H5Tcopy(H5T_IEEE_F32LE);
    case ElementType::f64: return H5Tcopy(H5T_IEEE_F64LE);
    case ElementType::f16:
    case ElementType::bf16: break;
  }
  const size_t exponent = type == ElementType::f16 ? 5 : 8, mantissa = 15 - exponent;
  const hid_t made = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(made, 15, mantissa, exponent, 0, mantissa);
  H5Tset_size(made, 2);
  H5Tset_ebias(made, type == ElementType::f16 ? 15 : 127);
  return made;
}

void write_h5_attribute(hid_t set, const std::string& path, const std::string& name,
                        const ArrayAttribute& value) {
  const std::string doing = fmt::format("write attribute '{}'", name);
  const bool text = value.numbers.empty();
  const H5Id type(h5_done(H5Tcopy(text ? H5T_C_S1 : H5T_NATIVE_DOUBLE), path, doing));
  if (text) H5Tset_size(type, value.text.size() + 1);
  const hsize_t count = value.numbers.size();
  const H5Id space(
      h5_done(text ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), path, doing));
  const H5Id attribute(
      h5_done(H5Acreate2(set, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), path, doing));
  const void* values = text ? static_cast<const void*>(value.text.c_str()) : value.numbers.data();
  h5_done(H5Awrite(attribute, type, values), path, doing);
}

void write_h5_array(hid_t file, const std::string& path, const ArrayRef& array,
                    const Hdf5Storage& storage) {
  CHECK(storage.chunk.empty() || storage.chunk.size() == array.shape.size(),
        "{} dimensions of chunks for {} of {}", storage.chunk.size(), array.shape.size(),
        array.name);
  CHECK(!storage.chunk.empty() || (storage.deflate == 0 && !storage.shuffle),
        "filters need chunks");
  const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end()),
      chunk(storage.chunk.begin(), storage.chunk.end());
  const std::string doing = fmt::format("write data set '{}'", array.name);
  const H5Id type(h5_done(h5_type(array.type), path, doing));
  const H5Id space(h5_done(
      extents.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
      path, doing));
  const H5Id links(h5_done(H5Pcreate(H5P_LINK_CREATE), path, doing)),
      layout(h5_done(H5Pcreate(H5P_DATASET_CREATE), path, doing));
  H5Pset_create_intermediate_group(links, 1);
  H5Pset_obj_track_times(layout, false);  // equal arrays make equal files
  if (!chunk.empty()) {
    H5Pset_chunk(layout, static_cast<int>(chunk.size()), chunk.data());
    if (storage.shuffle) H5Pset_shuffle(layout);
    if (storage.deflate > 0) H5Pset_deflate(layout, static_cast<unsigned>(storage.deflate));
  }
  const H5Id set(h5_done(
      H5Dcreate2(file, array.name.c_str(), type, space, links, layout, H5P_DEFAULT), path, doing));
  h5_done(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values), path, doing);
  for (const auto& [name, value] : array.attributes) write_h5_attribute(set, path, name, value);
}

std::vector<uint8_t> image_of(hid_t file, const std::string& name) {
  const auto whole = [&](bool is) { h5_done(is ? 0 : -1, name, "make the file"); };
  whole(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
  const ssize_t bytes = H5Fget_file_image(file, nullptr, 0);
  whole(bytes > 0);
  std::vector<uint8_t> image(static_cast<size_t>(bytes));
  whole(H5Fget_file_image(file, image.data(), image.size()) == bytes);
  return image;
}

void write_image(const std::filesystem::path& path, const std::vector<uint8_t>& image) {
  auto out = output_stream(path);
  errno = 0;
  out.write(reinterpret_cast<const char*>(image.data()),
            static_cast<std::streamsize>(image.size()));
  out.close();
  if (!out) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

}  // namespace

void write_hdf5(const std::filesystem::path& path, const std::vector<ArrayRef>& arrays,
                const Hdf5Storage& storage) {
  const std::lock_guard lock(hdf5_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const std::string name = path.string();
  const H5Id access(h5_done(H5Pcreate(H5P_FILE_ACCESS), name, "start"));
  H5Pset_file_locking(access, false, true);
  // The file is made in memory first: HDF5's library does not say why it cannot write, and if a
  // file may not grow, it cannot close it and may crash at the end of the process.
  H5Pset_fapl_core(access, size_t{1} << 20, false);
  std::vector<uint8_t> image;
  {
    const H5Id file(h5_done(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), name,
                            "make the file"));
    for (const ArrayRef& array : arrays) write_h5_array(file, name, array, storage);
    image = image_of(file, name);
  }
  write_image(path, image);
}

}  // namespace tutti::data
