#include "tutti/data/format/array/array_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tutti/data/file/inflate.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {

struct ArrayFile::Content {
  std::string name;
  std::vector<StoredArray> stored;
  std::vector<ArrayInfo> infos;
  NameCircles circles;

  /// Finds an array by name; infos.end() if there is none.
  auto named(std::string_view array) const {
    if (array.starts_with('/')) array.remove_prefix(1);
    const auto found = std::ranges::find(infos, array, &ArrayInfo::name);
    return found != infos.end()
               ? found
               : std::ranges::find(infos, plain_array_name(array, circles), &ArrayInfo::name);
  }
};

namespace {

/// Returns the product of two sizes, or the largest number on overflow: damaged headers announce
/// such sizes.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

int64_t product_of(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, times);
}

/// Lists at most a dozen names, so that a message stays one line.
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
        "{}: expected an array named '{}', found {}: name one of these, or give another file",
        name(), array, listed_arrays(infos));
  if (!found->problem.empty())
    throw UnreadableArray("{}: array '{}' cannot be read: {}", name(), array, found->problem);
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
        "{}: expected array '{}' as {} [{}] (-1: any), found {} [{}]: the file was not written for "
        "this model; convert it, or change the configuration",
        name(), info.name, name_of(type), fmt::join(shape, ", "), name_of(info.type),
        fmt::join(info.shape, ", "));
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
            "{}: array '{}' is corrupted: expected CRC-32 {:08x}, found {:08x}: fetch the file "
            "again",
            name(), info.name, *stored.member_crc, crc);
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

}  // namespace tutti::data
