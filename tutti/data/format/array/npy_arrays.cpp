#include "tutti/data/format/array/npy_arrays.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "tutti/base/own_file.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/zip_members.h"
#include "tutti/data/format/array/stored_array.h"

namespace tutti::data {
namespace {

constexpr size_t kMostRank = 32;  // the limit of NumPy and HDF5

/// Parses the subset of Python that NumPy writes.
class PythonText {
 public:
  explicit PythonText(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}'", wanted));
  }

  bool at(char wanted) {
    skip();
    return !rest_.empty() && rest_.front() == wanted;
  }

  std::string_view quoted() {
    skip();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') fail("a quoted word");
    const size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("the end of a quoted word");
    const std::string_view word = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return word;
  }

  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!take(')')) {
      skip();
      int64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc() || number < 0) fail("an extent");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      take('L');  // Python 2's long numbers
      if (numbers.size() == kMostRank) fail(fmt::format("at most {} dimensions", kMostRank));
      numbers.push_back(number);
      if (!at(')')) expect(',');
    }
    return numbers;
  }

  /// Skips a list with all its content.
  void pass_list() {
    int depth = 0;
    do {
      skip();
      if (at('\'') || at('"')) {
        quoted();
        continue;
      }
      if (rest_.empty()) fail("the end of a list");
      const char c = rest_.front();
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      rest_.remove_prefix(1);
    } while (depth > 0);
  }

  [[noreturn]] void fail(const std::string& wanted) const {
    throw BadFile("the .npy header is corrupted: expected {} before '{}'", wanted,
                  printable(rest_.substr(0, 16)));
  }

  static std::string printable(std::string_view text) {
    std::string out;
    for (const char c : text) out += c >= ' ' && c <= '~' ? c : '?';
    return out;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

/// Says how to save an array of such elements as numbers, by the letter of its type.
std::string_view npy_remedy(char letter) {
  switch (letter) {
    case 'O': return "(Python objects): save x.astype('float32'), or each of them by itself";
    case 'U':
    case 'S': return "(texts): save their numbers, numpy.unique(x, return_inverse=True)[1]";
    case 'c': return "(complex numbers): save numpy.stack([x.real, x.imag], axis=-1)";
    case 'f': return "(long floats): save x.astype('float64')";
    case 'M':
    case 'm': return "(times): save x.astype('int64')";
    default: return ": save the array as numbers";
  }
}

/// Parses '<f4' and the like.
void set_npy_type(std::string_view descr, StoredArray& array) {
  array.swapped = descr.starts_with('>');
  std::string_view code = descr;
  if (!code.empty() && std::string_view("<>|=").find(code.front()) != code.npos)
    code.remove_prefix(1);
  int bytes = 0;
  const auto [end, error] =
      code.size() < 2 ? std::from_chars_result{nullptr, std::errc::invalid_argument}
                      : std::from_chars(code.data() + 1, code.data() + code.size(), bytes);
  const bool whole = error == std::errc() && end == code.data() + code.size();
  const std::string name = code == "b1" || code == "?" ? "bool"
                           : whole && bytes <= 8       ? fmt::format("{}{}", code[0], bytes * 8)
                                                       : "";
  // Only NumPy's own letters are valid: "bf16" is not.
  if ((name != "bool" && (code.empty() || std::string_view("iuf").find(code[0]) == code.npos)) ||
      !element_type_of(name, array.info.type))
    array.info.problem =
        fmt::format("elements of type '{}' are not known here {}", PythonText::printable(descr),
                    npy_remedy(code.empty() ? ' ' : code[0]));
}

// Fills type, byte order, order of dimensions and shape; an unknown type becomes the array's
// problem. BadFile with the fault; the caller adds the file.
void parse_npy_header(std::string_view text, StoredArray& array) {
  PythonText python(text);
  bool has_type = false, has_order = false, has_shape = false;
  python.expect('{');
  while (!python.take('}')) {
    const std::string_view key = python.quoted();
    python.expect(':');
    if (key == "descr" && !has_type) {
      has_type = true;
      if (python.at('[')) {
        python.pass_list();
        array.info.problem =
            "records with fields are not known here: save each field on its own, as "
            "numpy.savez('NEW.npz', **{n: x[n] for n in x.dtype.names}) does";
      } else {
        set_npy_type(python.quoted(), array);
      }
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      array.first_fastest = python.boolean();
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      array.info.shape = python.tuple();
    } else {
      python.fail("descr, fortran_order and shape, each once,");
    }
    if (!python.at('}')) python.expect(',');
  }
  if (!has_type || !has_order || !has_shape) python.fail("descr, fortran_order and shape");
}

constexpr int64_t kNpyStart = 12;  // magic, version, and the longer of the two lengths
constexpr int64_t kMostNpyHeader = 1 << 20;

/// Reads and checks an npy's header. `read` fills a span from a place in the npy.
template <class Read>
StoredArray checked_npy(const std::string& name, int64_t bytes, const Read& read) {
  const auto refuse = [&](const std::string& what) {
    throw BadFile("{}: {}: fetch the file again", name, what);
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
    throw BadFile(
        "{}: {} bytes follow the array's end at byte {}{}", name, held - wanted,
        array.first + wanted,
        another ? ": another array, as numpy.save leaves it where it is called twice for one open "
                  "file: save each in a file of its own, or all with numpy.savez"
                : ": the file was joined with another one or written over: save it again");
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
      throw BadFile("{}: truncated: expected {} bytes, found {}: fetch the file again", name, bytes,
                    found);
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
