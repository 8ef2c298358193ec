#include "tutti/data/format/open_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/data/file/first_bytes.h"
#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/array/netcdf_classic.h"
#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/data/format/array/raw_arrays.h"
#include "tutti/data/format/array/stored_array.h"
#include "tutti/data/format/array/tiff_arrays.h"
#include "tutti/data/format/molecules/dcd.h"
#include "tutti/data/format/molecules/gromacs.h"

namespace tutti::data {
namespace {

ArrayFile open_npy_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  if (failed || files.empty())
    throw BadFile("{}: expected a folder with .npy files{}", folder.string(),
                  failed ? ": " + file_error(failed.value()) : "");
  std::ranges::sort(files);
  std::vector<StoredArray> arrays;
  for (const std::filesystem::path& path : files)
    for (StoredArray& array : read_npy(FileBytes::open(path))) {
      array.info.name = path.stem().string();
      arrays.push_back(std::move(array));
    }
  return {folder.string(), std::move(arrays)};
}

/// NetCDF long had no unsigned types: `_Unsigned` "true" says that a signed type means the unsigned
/// type with the same bits, also in attributes about stored values. Such an attribute is ignored if
/// its numbers do not fit the signed type, as in netCDF4-python.
void take_for_unsigned(ArrayInfo& info) {
  const auto declared = info.attributes.find("_Unsigned");
  if (declared == info.attributes.end() ||
      (declared->second.text != "true" && declared->second.text != "True"))
    return;
  ElementType type = info.type;
  switch (info.type) {
    case ElementType::i8: type = ElementType::u8; break;
    case ElementType::i16: type = ElementType::u16; break;
    case ElementType::i32: type = ElementType::u32; break;
    case ElementType::i64: type = ElementType::u64; break;
    default: return;
  }
  const double half = std::ldexp(1.0, static_cast<int>(8 * size_of(type)) - 1);
  for (const char* name :
       {"_FillValue", "missing_value", "valid_range", "valid_min", "valid_max"}) {
    const auto found = info.attributes.find(name);
    if (found == info.attributes.end()) continue;
    std::vector<double>& numbers = found->second.numbers;
    if (std::ranges::any_of(numbers, [&](double x) { return x < -half || x >= half; })) {
      info.attributes.erase(found);
      continue;
    }
    for (double& x : numbers) x += x < 0 ? 2 * half : 0;
  }
  info.type = type;
  info.unsigned_by_attribute = true;
}

/// Numbers have no meaning if their scale is text or no number. netCDF4-python fails, or makes
/// all of them NaN.
void check_scale(ArrayInfo& info) {
  for (const char* name : {"scale_factor", "add_offset"}) {
    const auto found = info.attributes.find(name);
    if (found == info.attributes.end() || !info.problem.empty()) continue;
    const auto& [numbers, text] = found->second;
    const bool infinite = numbers.size() == 1 && !std::isfinite(numbers[0]);
    if (text.empty() && !infinite) continue;
    info.problem = fmt::format(
        "its attribute {0} is {1}, expected a number: correct it, in Python h5py.File('FILE', "
        "'r+')['{2}'].attrs['{0}'] = NUMBER, in classic NetCDF netCDF4.Dataset('FILE', 'r+')"
        "['{2}'].setncattr('{0}', NUMBER)",
        name,
        infinite ? fmt::to_string(numbers[0]) : fmt::format("the text '{}'", text.substr(0, 40)),
        info.name);
  }
}

std::vector<StoredArray> as_netcdf_says(const FileBytes& file, std::vector<StoredArray> arrays) {
  for (StoredArray& array : arrays) {
    take_for_unsigned(array.info);
    check_scale(array.info);
  }
  add_periodic_array(file, arrays);
  return arrays;
}

}  // namespace

ArrayFile open_array_file(const std::filesystem::path& path, const ArrayFileOptions& options) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return open_npy_folder(path);
  const FileBytes file = FileBytes::open(path);
  std::vector<uint8_t> head(static_cast<size_t>(std::min<int64_t>(file.size(), 12)));
  file.read(0, head);
  const auto begins = [&](std::string_view magic) {
    return head.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), head.begin(),
                      [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  };
  if (begins("\x93NUMPY")) return {file.name(), read_npy(file)};
  if (begins("PK\x03\x04") || begins("PK\x05\x06")) {
    const bool torch = first_bytes_of(file).content == Content::torch_zip;
    std::vector<StoredArray> arrays = torch ? std::vector<StoredArray>() : read_npz(file);
    if (arrays.empty() && begins("PK\x03\x04"))
      throw BadFile("{}: expected arrays in NumPy's .npz, {}", file.name(), found_instead(file));
    return {file.name(), std::move(arrays)};
  }
  if (is_hdf5(file)) {
    NameCircles circles;
    std::vector<StoredArray> arrays = read_hdf5(file, options, &circles);
    return {file.name(), as_netcdf_says(file, std::move(arrays)), std::move(circles)};
  }
  if (is_netcdf_classic(head))
    return {file.name(), as_netcdf_says(file, read_netcdf_classic(file))};
  if (is_tiff(head)) return {file.name(), read_tiff(file)};
  if (is_xtc(head)) return {file.name(), frame_arrays(read_xtc(file))};
  if (is_trr(head)) return {file.name(), frame_arrays(read_trr(file))};
  if (is_dcd(head)) return {file.name(), dcd_arrays(file, options.probe)};
  if (path.extension() == ".toml") return {file.name(), read_raw_arrays(file, path)};
  throw BadFile(
      "{}: expected an array file (.npy, .npz, HDF5, NetCDF, TIFF, a trajectory as DCD, XTC "
      "or TRR, or a .toml that describes raw data), {}",
      file.name(), found_instead(file));
}

}  // namespace tutti::data
