#include "tutti/data/format/array/netcdf_classic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tutti/data/file/first_bytes.h"
#include "tutti/data/format/array/frames.h"

namespace tutti::data {
namespace {

constexpr uint32_t kDimensionTag = 10, kVariableTag = 11, kAttributeTag = 12;
/// NetCDF's own limit. It also bounds how much a small file's variables may copy of its names.
constexpr int64_t kMostNameBytes = 256;
constexpr int64_t kMostNetcdfRank = 32;
constexpr int64_t kTooMany = std::numeric_limits<int64_t>::max();

struct ClassicType {
  ElementType type = ElementType::u8;
  bool text = false;
};

int64_t padded(int64_t bytes) { return bytes > kTooMany - 3 ? kTooMany : (bytes + 3) / 4 * 4; }
int64_t product_up_to_most(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kTooMany : product;
}
int64_t sum_up_to_most(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kTooMany : sum;
}

class ClassicHeader {
 public:
  explicit ClassicHeader(const FileBytes& file) : file_(file), reader_(file) {}

  std::vector<StoredArray> read() {
    version_ = static_cast<int>(reader_.u32() & 0xff);
    const int64_t records = version_ == 5 ? reader_.i64() : int64_t{reader_.u32()};
    const bool streaming = records == (version_ == 5 ? int64_t{-1} : int64_t{0xffffffff});
    if (records < 0 && !streaming) wrong("a number of records", std::to_string(records));
    read_dimensions();
    read_attributes();
    for (int64_t left = list(kVariableTag, "variables"); left > 0; --left) read_variable();
    place_records(streaming ? -1 : records);
    return std::move(arrays_);
  }

 private:
  struct Dimension {
    std::string name;
    int64_t extent = 0;  ///< 0: the record dimension
  };

  [[noreturn]] void wrong(std::string_view expected, std::string_view found) const {
    throw BadFile(unreadable(file_, Content::netcdf,
                             fmt::format("expected {} at byte {} of a NetCDF header, found {}",
                                         expected, reader_.at(), found)));
  }

  /// Reads a length, or a count of things of at least a byte each.
  int64_t count(std::string_view of, int64_t most) {
    const int64_t found = version_ == 5 ? reader_.i64() : int64_t{reader_.u32()};
    if (found < 0 || found > most)
      wrong(fmt::format("at most {} {}", most, of), std::to_string(found));
    return found;
  }

  /// Reads the number of entries in a list, which may be absent.
  int64_t list(uint32_t tag, std::string_view of) {
    const uint32_t found = reader_.u32();
    const int64_t entries = count(of, reader_.left());
    if (found != tag && !(found == 0 && entries == 0))
      wrong(fmt::format("a list of {}", of), fmt::format("the tag {}", found));
    return entries;
  }

  std::string text(int64_t bytes) {
    std::string read(static_cast<size_t>(bytes), '\0');
    const int64_t at = reader_.at();
    reader_.skip(padded(bytes));
    file_.read(at, {reinterpret_cast<uint8_t*>(read.data()), read.size()});
    return read;
  }
  std::string name() { return text(count("bytes of a name", kMostNameBytes)); }

  ClassicType type() {
    using enum ElementType;
    constexpr std::array<ElementType, 12> kTypes = {u8,  i8, u8,  i16, i32, f32,
                                                    f64, u8, u16, u32, i64, u64};
    const uint32_t number = reader_.u32();
    if (number < 1 || number > (version_ == 5 ? 11 : 6)) wrong("a type", std::to_string(number));
    return {kTypes[number], number == 2};
  }

  void read_dimensions() {
    for (int64_t left = list(kDimensionTag, "dimensions"); left > 0; --left) {
      std::string named = name();
      dimensions_.push_back({std::move(named), count("elements", kTooMany)});
    }
  }

  std::map<std::string, ArrayAttribute> read_attributes() {
    std::map<std::string, ArrayAttribute> attributes;
    for (int64_t left = list(kAttributeTag, "attributes"); left > 0; --left) {
      std::string named = name();
      const ClassicType of = type();
      const int64_t element = static_cast<int64_t>(size_of(of.type)),
                    values = count("values", reader_.left() / element);
      std::string bytes = text(values * element);
      ArrayAttribute& attribute = attributes[std::move(named)];
      if (of.text) {
        attribute.text = bytes.substr(0, bytes.find('\0'));
      } else {
        swap_bytes({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}, size_of(of.type));
        with_elements(of.type, bytes.data(), [&](const auto* x) {
          for (int64_t i = 0; i < values; ++i)
            if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(*x)>>)
              attribute.numbers.push_back(static_cast<double>(x[i]));
        });
      }
    }
    return attributes;
  }

  void read_variable() {
    StoredArray array;
    array.info.name = name();
    bool along_records = false;
    for (int64_t i = 0, rank = count("dimensions", kMostNetcdfRank); i < rank; ++i) {
      const int64_t at = count("as the number of a dimension", std::ssize(dimensions_) - 1);
      const Dimension& dimension = dimensions_[static_cast<size_t>(at)];
      array.info.shape.push_back(dimension.extent);
      array.info.dimensions.push_back(dimension.name);
      if (dimension.extent == 0 && i > 0) wrong("the record dimension as the first one", "another");
      along_records |= dimension.extent == 0;
    }
    array.info.attributes = read_attributes();
    const ClassicType of = type();
    array.info.type = of.type;
    if (of.text) array.info.problem = "it holds text";
    version_ == 5 ? reader_.i64() : int64_t{reader_.u32()};  // bytes, which follow from the shape
    array.first = version_ == 1 ? int64_t{reader_.u32()} : reader_.i64();
    if (array.first < 0) wrong("a place in the file", std::to_string(array.first));
    array.file = file_;
    array.swapped = true;
    if (!along_records) {
      check_end(array, array.first, bytes_of(array.info, 0));
      check_announced(array.info, file_.size());
    }
    along_records_.push_back(along_records);
    arrays_.push_back(std::move(array));
  }

  /// Returns the bytes over the dimensions from `from` on.
  static int64_t bytes_of(const ArrayInfo& info, size_t from) {
    auto bytes = static_cast<int64_t>(size_of(info.type));
    for (size_t i = from; i < info.shape.size(); ++i)
      bytes = product_up_to_most(bytes, info.shape[i]);
    return bytes;
  }

  void check_end(StoredArray& array, int64_t first, int64_t bytes) const {
    if (array.info.problem.empty() && (first > file_.size() || bytes > file_.size() - first))
      array.info.problem = fmt::format(
          "its {} bytes from byte {} on go beyond the end of the file, {}: it is truncated or "
          "corrupted; fetch it again",
          bytes, first, file_.size());
  }

  /// Places the records, whose length is known once all variables are. `records` -1: as many as the
  /// file holds.
  void place_records(int64_t records) {
    const int64_t in_record = std::ranges::count(along_records_, true);
    int64_t record_bytes = 0, first = kTooMany;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (!along_records_[i]) continue;
      const int64_t bytes = bytes_of(arrays_[i].info, 1);
      record_bytes = sum_up_to_most(record_bytes, in_record == 1 ? bytes : padded(bytes));
      first = std::min(first, arrays_[i].first);
    }
    if (records < 0)
      records = record_bytes > 0 ? std::max<int64_t>(file_.size() - first, 0) / record_bytes : 0;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (!along_records_[i]) continue;
      StoredArray& array = arrays_[i];
      array.info.shape[0] = records;
      array.row_bytes = record_bytes;
      if (records > 0)
        check_end(array, sum_up_to_most(array.first, product_up_to_most(records - 1, record_bytes)),
                  bytes_of(array.info, 1));
      check_announced(array.info, file_.size());
    }
  }

  const FileBytes& file_;
  HeaderReader reader_;
  int version_ = 1;
  std::vector<Dimension> dimensions_;
  std::vector<StoredArray> arrays_;
  std::vector<bool> along_records_;
};

}  // namespace

bool is_netcdf_classic(std::span<const uint8_t> head) {
  return head.size() >= 4 && head[0] == 'C' && head[1] == 'D' && head[2] == 'F' &&
         (head[3] == 1 || head[3] == 2 || head[3] == 5);
}

std::vector<StoredArray> read_netcdf_classic(const FileBytes& file) {
  return ClassicHeader(file).read();
}

}  // namespace tutti::data
