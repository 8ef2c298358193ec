#include "tutti/data/format/array/npy_arrays.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <fstream>

#include "tutti/base/own_file.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/zip_members.h"
#include "tutti/data/format/array/npy_header.h"

namespace tutti::data {
namespace {

constexpr int64_t kNpyStart = 12;  // magic, version, and the longer of the two lengths
constexpr int64_t kMostNpyHeader = 1 << 20;

/// Reads and checks an npy's header. `read` fills a span from a place in the npy.
template <class Read>
StoredArray checked_npy(const std::string& name, int64_t bytes, const Read& read) {
  const auto refuse = [&](const std::string& what) {
    throw BadFile(fmt::format("{}: {}: fetch the file again", name, what));
  };
  if (bytes < kNpyStart)
    refuse(fmt::format("truncated: expected an .npy header, found {} bytes", bytes));
  std::vector<uint8_t> start(static_cast<size_t>(kNpyStart));
  read(0, start);
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0) refuse("no .npy magic");
  const int version = start[6];
  if (version < 1 || version > 3) refuse(fmt::format("expected .npy 1 to 3, found {}", version));
  const int64_t length =
      version == 1 ? start[8] | start[9] << 8
                   : start[8] | start[9] << 8 | start[10] << 16 | int64_t{start[11]} << 24;
  const int64_t begin = version == 1 ? 10 : 12;
  if (length > kMostNpyHeader || length > bytes - begin)
    refuse(fmt::format("a header of {} bytes in {} bytes", length, bytes));
  std::vector<uint8_t> text(static_cast<size_t>(length));
  read(begin, text);
  StoredArray array;
  try {
    parse_npy_header({reinterpret_cast<const char*>(text.data()), text.size()}, array);
  } catch (const BadFile& error) {
    refuse(error.what());
  }
  array.first = begin + length;
  if (!array.info.problem.empty()) return array;
  check_announced(array.info, bytes - array.first);
  const int64_t held = bytes - array.first, wanted = array.info.bytes();
  if (array.info.problem.empty() && held > wanted) {
    std::vector<uint8_t> next(static_cast<size_t>(std::min<int64_t>(held - wanted, 6)));
    read(array.first + wanted, next);
    const bool another = std::memcmp(next.data(), "\x93NUMPY", next.size()) == 0;
    throw BadFile(fmt::format(
        "{}: {} bytes follow the array's end at byte {}{}", name, held - wanted,
        array.first + wanted,
        another ? ": another array, as numpy.save leaves it where it is called twice for one open "
                  "file: save each in a file of its own, or all with numpy.savez"
                : ": the file was joined with another one or written over: save it again"));
  }
  if (array.info.problem.empty() && held != wanted)
    refuse(fmt::format("expected {} [{}] = {} bytes of data, found {}", name_of(array.info.type),
                       fmt::join(array.info.shape, ", "), array.info.bytes(), bytes - array.first));
  if (!array.info.problem.empty()) refuse(array.info.problem);
  return array;
}

StoredArray npy_member(const FileBytes& file, const ZipMember& member) {
  const std::string name = fmt::format("{}: member '{}'", file.name(), member.name);
  const bool packed = member.method == ZipMember::kDeflated;
  const int64_t bytes = member.bytes;
  StoredArray array = checked_npy(name, bytes, [&](int64_t at, std::span<uint8_t> out) {
    if (!packed) return file.read(member.first + at, out);
    std::vector<uint8_t> from_start(static_cast<size_t>(at) + out.size());
    const size_t found =
        inflate_start(file, member.first, member.stored, Deflated::bare, from_start, name);
    if (found < from_start.size())
      throw BadFile(fmt::format("{}: truncated: expected {} bytes, found {}: fetch the file again",
                                name, bytes, found));
    std::copy(from_start.begin() + static_cast<ptrdiff_t>(at), from_start.end(), out.begin());
  });
  if (packed) {
    array.packed = std::make_shared<PackedBytes>();
    array.packed->file = file;
    array.packed->first = member.first;
    array.packed->stored = member.stored;
    array.packed->bytes = bytes;
    array.packed->crc = member.crc;
    array.packed->name = name;
  } else {
    array.file = file;
    array.first += member.first;
    array.member_crc = member.crc;
    array.member_first = member.first;
    array.member_bytes = bytes;
  }
  return array;
}

std::string npy_type(ElementType type) {
  switch (type) {
    case ElementType::boolean: return "|b1";
    case ElementType::i8: return "|i1";
    case ElementType::u8: return "|u1";
    case ElementType::bf16: throw ConfigError("NumPy's .npy has no bf16: write f32");
    default: break;
  }
  const std::string_view name = name_of(type);
  return fmt::format("<{}{}", name[0], size_of(type));
}

}  // namespace

std::vector<StoredArray> read_npy(const FileBytes& file) {
  if (const Content found = first_bytes_of(file).content; found != Content::npy)
    throw BadFile(unreadable(file, Content::npy, "no .npy header"));
  StoredArray array = checked_npy(file.name(), file.size(),
                                  [&](int64_t at, std::span<uint8_t> out) { file.read(at, out); });
  array.info.name = "array";
  array.file = file;
  std::vector<StoredArray> arrays;
  arrays.push_back(std::move(array));
  return arrays;
}

std::vector<StoredArray> read_npz(const FileBytes& file) {
  std::vector<StoredArray> arrays;
  for (const ZipMember& member : zip_members(file)) {
    if (!member.name.ends_with(".npy")) continue;
    StoredArray array = npy_member(file, member);
    array.info.name = member.name.substr(0, member.name.size() - 4);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

int64_t ArrayRef::bytes() const {
  return ArrayInfo{.name = {}, .type = type, .shape = shape}.bytes();
}

std::string npy_start(ElementType type, const std::vector<int64_t>& shape) {
  std::string extents;
  for (const int64_t extent : shape) extents += fmt::format("{},", extent);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   npy_type(type), extents);
  constexpr size_t kBefore = 10;  // magic, version, length
  header.resize((header.size() + 1 + kBefore + 63) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';  // the data begin at a multiple of 64
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);
  return start + header;
}

void write_npy_array(const std::filesystem::path& path, const ArrayRef& array) {
  auto file = output_stream(path);
  file << npy_start(array.type, array.shape);
  file.write(static_cast<const char*>(array.values), array.bytes());
  file.close();
  if (!file) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

}  // namespace tutti::data
