#include "tutti/data/format/array_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "tutti/data/format/crc32.h"
#include "tutti/data/format/first_bytes.h"
#include "tutti/data/format/hdf5_arrays.h"
#include "tutti/data/format/molecules/dcd.h"
#include "tutti/data/format/molecules/frames.h"
#include "tutti/data/format/molecules/trr.h"
#include "tutti/data/format/molecules/xtc.h"
#include "tutti/data/format/netcdf_classic.h"
#include "tutti/data/format/npy_arrays.h"
#include "tutti/data/format/raw_arrays.h"
#include "tutti/data/format/stored_array.h"
#include "tutti/data/format/tiff_arrays.h"

namespace tutti::data {

struct ArrayFile::Content {
  std::string name;
  std::vector<StoredArray> stored;
  std::vector<ArrayInfo> infos;
  NameCircles circles;

  /// infos.end() where there is none.
  auto named(std::string_view array) const {
    if (array.starts_with('/')) array.remove_prefix(1);
    const auto found = std::ranges::find(infos, array, &ArrayInfo::name);
    return found != infos.end()
               ? found
               : std::ranges::find(infos, plain_array_name(array, circles), &ArrayInfo::name);
  }
};

namespace {

/// The product of two sizes, or the largest number where it is beyond: damaged headers announce
/// such.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t product_of(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, times);
}

/// At most a dozen names, so that a message stays one line.
std::string listed_arrays(const std::vector<ArrayInfo>& infos) {
  if (infos.empty()) return "no arrays";
  std::string text;
  constexpr size_t kMost = 12;
  for (size_t i = 0; i < std::min(infos.size(), kMost); ++i)
    text += fmt::format("{}{} {} [{}]", i ? ", " : "", infos[i].name, name_of(infos[i].type),
                        fmt::join(infos[i].shape, ", "));
  if (infos.size() > kMost) text += fmt::format(" and {} more", infos.size() - kMost);
  return text;
}

}  // namespace

std::string plain_array_name(std::string_view name, const NameCircles& circles) {
  std::string path;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (!path.empty()) path += '/';
    path += part;
    if (const auto circle = circles.find(path); circle != circles.end()) path = circle->second;
  }
  return path;
}

int64_t ArrayInfo::elements() const { return product_of(shape); }
int64_t ArrayInfo::bytes() const { return times(elements(), static_cast<int64_t>(size_of(type))); }

int64_t Slab::elements() const { return product_of(count); }

Slab Slab::all(const ArrayInfo& info) {
  return {std::vector<int64_t>(info.shape.size(), 0), info.shape};
}

Slab Slab::rows(const ArrayInfo& info, int64_t first, int64_t count) {
  CHECK(!info.shape.empty(), "{} has no dimensions", info.name);
  Slab slab = all(info);
  slab.start[0] = first;
  slab.count[0] = count;
  return slab;
}

ArrayFile::ArrayFile(std::string name, std::vector<StoredArray> arrays, NameCircles circles) {
  auto content = std::make_shared<Content>();
  content->name = std::move(name);
  for (const StoredArray& array : arrays) content->infos.push_back(array.info);
  content->stored = std::move(arrays);
  content->circles = std::move(circles);
  content_ = std::move(content);
}

const std::string& ArrayFile::name() const { return content_->name; }
const std::vector<ArrayInfo>& ArrayFile::arrays() const { return content_->infos; }

size_t ArrayFile::find(std::string_view array) const {
  const auto& infos = content_->infos;
  const auto found = content_->named(array);
  if (found == infos.end())
    throw BadFile(
        fmt::format("{}: expected an array named '{}', found {}: name one of these, or "
                    "give another file",
                    name(), array, listed_arrays(infos)));
  if (!found->problem.empty())
    throw UnreadableArray(
        fmt::format("{}: array '{}' cannot be read: {}", name(), array, found->problem));
  return static_cast<size_t>(found - infos.begin());
}

bool ArrayFile::holds(std::string_view array) const {
  return content_->named(array) != content_->infos.end();
}

size_t ArrayFile::find(std::string_view array, ElementType type,
                       std::span<const int64_t> shape) const {
  const size_t index = find(array);
  const ArrayInfo& info = arrays()[index];
  const bool fits =
      type == info.type && std::ranges::equal(shape, info.shape, [](int64_t asked, int64_t found) {
        return asked == -1 || asked == found;
      });
  if (!fits)
    throw BadFile(
        fmt::format("{}: expected array '{}' as {} [{}] (-1: any), found {} [{}]: the "
                    "file was not written for this model; convert it, or change the "
                    "configuration",
                    name(), info.name, name_of(type), fmt::join(shape, ", "), name_of(info.type),
                    fmt::join(info.shape, ", ")));
  return index;
}

namespace {

/// CHECKs that the array can be read and that the slab lies within it.
void check_slab(const StoredArray& stored, const Slab& slab) {
  const auto& shape = stored.info.shape;
  CHECK(stored.info.problem.empty(), "{}: {}", stored.info.name, stored.info.problem);
  CHECK(slab.start.size() == shape.size() && slab.count.size() == shape.size(),
        "a slab of {} dimensions of {}", slab.count.size(), shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    CHECK(slab.start[i] >= 0 && slab.count[i] >= 0 && slab.start[i] <= shape[i] &&
              slab.count[i] <= shape[i] - slab.start[i],
          "{} elements from {} on of dimension {} of {} [{}]", slab.count[i], slab.start[i], i,
          stored.info.name, fmt::join(shape, ", "));
}

}  // namespace

void ArrayFile::read(size_t array, const Slab& slab, void* out, ChunkCache* cache) const {
  CHECK(array < content_->stored.size(), "array {} of {}", array, content_->stored.size());
  const StoredArray& stored = content_->stored[array];
  check_slab(stored, slab);
  if (slab.elements() > 0) read_stored(stored, name(), slab, static_cast<uint8_t*>(out), cache);
}

const void* ArrayFile::view(size_t array, const Slab& slab) const {
  CHECK(array < content_->stored.size(), "array {} of {}", array, content_->stored.size());
  const StoredArray& stored = content_->stored[array];
  check_slab(stored, slab);
  const uint8_t* found = slab.elements() > 0 ? view_stored(stored, slab) : nullptr;
  return reinterpret_cast<uintptr_t>(found) % size_of(stored.info.type) == 0 ? found : nullptr;
}

bool ArrayFile::in_order(size_t array) const {
  CHECK(array < content_->stored.size(), "array {} of {}", array, content_->stored.size());
  const StoredArray& stored = content_->stored[array];
  return stored.file && !stored.packed && !stored.chunks && !stored.first_fastest;
}

int64_t ArrayFile::held_bytes() const {
  int64_t bytes = 0;
  for (const StoredArray& stored : content_->stored)
    if (stored.packed) {
      const std::lock_guard lock(stored.packed->mutex);
      if (stored.packed->inflated) bytes += stored.packed->bytes;
    }
  return bytes;
}

void ArrayFile::read_f32(size_t array, const Slab& slab, float* out) const {
  CHECK(array < arrays().size(), "array {} of {}", array, arrays().size());
  const ElementType type = arrays()[array].type;
  if (type == ElementType::f32) return read(array, slab, out);
  std::vector<uint8_t> bytes(static_cast<size_t>(slab.elements()) * size_of(type));
  read(array, slab, bytes.data());
  to_f32(type, bytes.data(), slab.elements(), out);
}

void ArrayFile::verify() const {
  constexpr int64_t kPieceBytes = int64_t{16} << 20;
  std::vector<uint8_t> piece;
  for (size_t i = 0; i < arrays().size(); ++i) {
    const ArrayInfo& info = arrays()[i];
    const StoredArray& stored = content_->stored[i];
    if (!info.problem.empty()) continue;
    if (stored.member_crc && stored.file) {
      uint32_t crc = 0;
      for (int64_t at = 0; at < stored.member_bytes; at += kPieceBytes) {
        piece.resize(static_cast<size_t>(std::min(kPieceBytes, stored.member_bytes - at)));
        stored.file->read(stored.member_first + at, piece);
        crc = crc32_of(piece, crc);
      }
      if (crc != *stored.member_crc)
        throw BadFile(
            fmt::format("{}: array '{}' is corrupted: expected CRC-32 {:08x}, found "
                        "{:08x}: fetch the file again",
                        name(), info.name, *stored.member_crc, crc));
    }
    if (info.shape.empty() || info.elements() == 0) {
      piece.resize(static_cast<size_t>(info.bytes()));
      read(i, Slab::all(info), piece.data());
      continue;
    }
    const int64_t row_bytes = std::max<int64_t>(1, info.bytes() / info.shape[0]);
    int64_t rows = std::max<int64_t>(1, kPieceBytes / row_bytes);
    if (!info.chunk.empty()) rows = (rows + info.chunk[0] - 1) / info.chunk[0] * info.chunk[0];
    for (int64_t row = 0; row < info.shape[0]; row += rows) {
      const Slab slab = Slab::rows(info, row, std::min(rows, info.shape[0] - row));
      piece.resize(static_cast<size_t>(slab.elements()) * size_of(info.type));
      read(i, slab, piece.data());
    }
  }
}

namespace {

ArrayFile open_npy_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  if (failed || files.empty())
    throw BadFile(fmt::format("{}: expected a folder with .npy files{}", folder.string(),
                              failed ? ": " + file_error(failed.value()) : ""));
  std::ranges::sort(files);
  std::vector<StoredArray> arrays;
  for (const std::filesystem::path& path : files)
    for (StoredArray& array : read_npy(FileBytes::open(path))) {
      array.info.name = path.stem().string();
      arrays.push_back(std::move(array));
    }
  return {folder.string(), std::move(arrays)};
}

/// NetCDF has had no unsigned types for long: `_Unsigned` "true" says that a signed one means the
/// unsigned one of the same bits, in the attributes that speak of stored values, too. Such an
/// attribute whose numbers the signed type cannot hold means nothing, as to netCDF4-python.
void take_for_unsigned(ArrayInfo& info) {
  const auto said = info.attributes.find("_Unsigned");
  if (said == info.attributes.end() || (said->second.text != "true" && said->second.text != "True"))
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

/// Nobody knows what numbers mean whose scale is text or no number. netCDF4-python fails, or makes
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
      throw BadFile(
          fmt::format("{}: expected arrays in NumPy's .npz, {}", file.name(), found_instead(file)));
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
  throw BadFile(fmt::format(
      "{}: expected an array file (.npy, .npz, HDF5, NetCDF, TIFF, a trajectory as DCD, XTC "
      "or TRR, or a .toml that describes raw data), {}",
      file.name(), found_instead(file)));
}

}  // namespace tutti::data
