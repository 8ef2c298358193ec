#include "tutti/keep/safetensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "tutti/base/json.h"
#include "tutti/base/json_words.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::keep {
namespace {

using Type = SafetensorsFile::Type;
using Entry = SafetensorsFile::Entry;

struct TypeRow {
  Type type;
  std::string_view name;
  uint64_t size;
};
constexpr std::array<TypeRow, 13> kTypes = {{{Type::f64, "F64", 8},
                                             {Type::f32, "F32", 4},
                                             {Type::f16, "F16", 2},
                                             {Type::bf16, "BF16", 2},
                                             {Type::i64, "I64", 8},
                                             {Type::i32, "I32", 4},
                                             {Type::i16, "I16", 2},
                                             {Type::i8, "I8", 1},
                                             {Type::u64, "U64", 8},
                                             {Type::u32, "U32", 4},
                                             {Type::u16, "U16", 2},
                                             {Type::u8, "U8", 1},
                                             {Type::boolean, "BOOL", 1}}};

/// Types of the format that are not read.
constexpr std::string_view kOtherTypes[] = {"F8_E4M3",     "F8_E5M2",     "F8_E8M0",
                                            "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F6_E2M3",
                                            "F6_E3M2",     "F4",          "C64"};

const TypeRow& row_of(Type type) { return kTypes[static_cast<size_t>(type)]; }

/// binary16 to binary32; every half is exact in single precision.
float from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

template <class T>
std::vector<float> converted(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

/// Reads one file's header; its messages name the file.
struct HeaderReader {
  std::string file;

  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(fmt::format("{}: not a valid safetensors file: {}", file, what));
  }
  [[noreturn]] void fail(const std::string& tensor, const std::string& what) const {
    fail(fmt::format("tensor '{}': {}", tensor, what));
  }

  std::map<std::string, Json> parse(const std::string& text) const {
    try {
      return parse_members(text);
    } catch (const RepeatedKey& error) {
      fail(error.key, "named twice");
    } catch (const Json::exception& error) {
      fail(fmt::format("the header is damaged: {}", json_words(error)));
    } catch (const IoError& error) {
      fail(fmt::format("the header is {}", error.what()));
    }
  }

  [[noreturn]] void refuse_type(const std::string& name, const Json& dtype) const {
    if (std::ranges::none_of(kOtherTypes, [&](std::string_view type) { return dtype == type; }))
      fail(name, fmt::format("dtype {} is unknown", print_json(dtype)));
    throw IoError(fmt::format(
        "{}: tensor '{}' is of dtype {}, a sound one that Tutti does not read: convert the weights "
        "to F32, F16 or BF16, of a quantised model with its scales, and save them with "
        "safetensors.torch.save_file",
        file, name, print_json(dtype)));
  }

  Entry entry(const std::string& name, const Json& json) const {
    if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
        !json.contains("data_offsets"))
      fail(name, "needs dtype, shape and data_offsets");
    Entry entry{.name = name, .type = {}, .shape = {}};
    const Json &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
    const auto row =
        std::ranges::find_if(kTypes, [&](const TypeRow& r) { return dtype == r.name; });
    if (row == kTypes.end()) refuse_type(name, dtype);
    entry.type = row->type;

    if (!shape.is_array()) fail(name, "shape must be a list");
    uint64_t bytes = row->size;
    for (const Json& extent : shape) {
      if (!extent.is_number_unsigned() ||
          extent.get<uint64_t>() > std::numeric_limits<int64_t>::max())
        fail(name, fmt::format("shape {} must hold whole numbers", print_json(shape)));
      entry.shape.push_back(extent.get<int64_t>());
      if (__builtin_mul_overflow(bytes, extent.get<uint64_t>(), &bytes))
        fail(name, fmt::format("shape {} is too large", print_json(shape)));
    }

    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail(name, "data_offsets must be two whole numbers");
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    if (entry.begin > entry.end || entry.end - entry.begin != bytes)
      fail(name, fmt::format("data_offsets {} do not give the {} bytes of {} {}",
                             print_json(offsets), bytes, row->name, print_json(shape)));
    return entry;
  }

  TensorMetadata metadata(const Json& json) const {
    TensorMetadata texts;
    if (!json.is_object()) fail("__metadata__ must be an object");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) fail(fmt::format("__metadata__ '{}' must be text", key));
      texts[key] = value.get<std::string>();
    }
    return texts;
  }

  /// Sorts by place and refuses overlaps, gaps, and a file that is too short or too long.
  void check_places(std::vector<Entry>& entries, uint64_t data_bytes) const {
    std::ranges::sort(entries, {},
                      [](const Entry& e) { return std::tuple(e.begin, e.end, e.name); });
    uint64_t place = 0;
    for (const Entry& entry : entries) {
      if (entry.end > data_bytes)
        fail(entry.name,
             fmt::format("ends at byte {} of the data, but the file holds only {}: it is truncated",
                         entry.end, data_bytes));
      if (entry.begin < place) fail(entry.name, "overlaps another tensor");
      if (entry.begin > place)
        fail(entry.name, fmt::format("{} unused bytes before it", entry.begin - place));
      place = entry.end;
    }
    if (place != data_bytes)
      fail(fmt::format("{} bytes after the last tensor", data_bytes - place));
  }
};

}  // namespace

std::string_view name_of(Type type) { return row_of(type).name; }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  std::error_code unknown;
  const bool regular = std::filesystem::is_regular_file(path, unknown);  // else opening says why
  if (regular &&
      data::first_bytes_of(data::FileBytes::open(path)).content == data::Content::parts_index)
    add_parts_of_index();
  else
    add_part(path);
  for (size_t i = 0; i < entries_.size(); ++i)
    if (!places_.emplace(entries_[i].name, i).second)
      throw IoError(
          fmt::format("{}: two of its files have a tensor '{}'", path.string(), entries_[i].name));
}

void SafetensorsFile::add_part(const std::filesystem::path& path) {
  Part part{std::make_unique<InputFile>(path)};
  const HeaderReader reader{path.string()};
  const auto refuse = [&](const std::string& why) {
    throw IoError(data::unreadable(path, data::Content::safetensors, why));
  };
  uint64_t header_bytes = 0;
  const uint64_t size = part.file->size();
  if (size < 8) refuse(fmt::format("it has only {} bytes", size));
  part.file->read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes < 2 || header_bytes > kSafetensorsHeaderLimit || header_bytes > size - 8)
    refuse(fmt::format("a header of {} bytes in a file of {}", header_bytes, size));
  std::string text(static_cast<size_t>(header_bytes), '\0');
  part.file->read(8, std::as_writable_bytes(std::span(text)));
  part.data_begin = 8 + header_bytes;

  std::vector<Entry> entries;
  for (const auto& [name, json] : reader.parse(text)) {
    if (name == "__metadata__")
      metadata_ = reader.metadata(json);
    else
      entries.push_back(reader.entry(name, json));
  }
  reader.check_places(entries, size - part.data_begin);
  for (Entry& entry : entries) {
    entry.file = parts_.size();
    entries_.push_back(std::move(entry));
  }
  parts_.push_back(std::move(part));
}

void SafetensorsFile::add_parts_of_index() {
  const auto damaged = [&](const std::string& why) {
    return IoError(
        fmt::format("{}: the index of weights in several files is damaged: {}; fetch it again",
                    path_.string(), why));
  };
  std::map<std::string, std::string> file_of;  // each tensor's file
  const std::string text = read_text(path_);
  try {
    const Json index = parse_json(text);
    for (const auto& [name, file] : index.at("weight_map").items())
      file_of[name] = file.get<std::string>();
  } catch (const Json::exception& error) {
    throw damaged(json_words(error));
  } catch (const IoError& error) {
    throw damaged(error.what());
  }
  std::set<std::string> files;
  for (const auto& [name, file] : file_of) {
    if (file.empty() || file == ".." || std::filesystem::path(file).filename() != file)
      throw damaged(
          fmt::format("'{}' lies in '{}', which is no name of a file beside it", name, file));
    files.insert(file);
  }
  for (const std::string& file : files) {
    const std::filesystem::path part = path_.parent_path() / file;
    std::error_code unknown;
    if (!std::filesystem::exists(part, unknown))
      throw IoError(
          fmt::format("{}: names {}, which is not there: fetch all {} files that it names",
                      path_.string(), part.string(), files.size()));
    add_part(part);
  }
  std::set<std::string_view> there;
  for (const Entry& entry : entries_) there.insert(entry.name);
  for (const auto& [name, file] : file_of)
    if (!there.contains(name))
      throw IoError(
          fmt::format("{}: tensor '{}' is not in {}: the files do not belong together; "
                      "fetch them again",
                      path_.string(), name, file));
}

const Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

std::vector<std::byte> SafetensorsFile::bytes(const Entry& entry) const {
  std::vector<std::byte> bytes(static_cast<size_t>(entry.end - entry.begin));
  parts_[entry.file].file->read(parts_[entry.file].data_begin + entry.begin, bytes);
  return bytes;
}

void SafetensorsFile::read_part(const Entry& entry, uint64_t from,
                                std::span<std::byte> part) const {
  const uint64_t bytes = entry.end - entry.begin;
  CHECK(from <= bytes && part.size() <= bytes - from, "'{}': bytes {} to {} of {}", entry.name,
        from, from + part.size(), bytes);
  parts_[entry.file].file->read(parts_[entry.file].data_begin + entry.begin + from, part);
}

std::vector<float> SafetensorsFile::read_f32(const Entry& entry) const {
  const std::vector<std::byte> raw = bytes(entry);
  switch (entry.type) {
    case Type::f64: return converted<double>(raw);
    case Type::f32: return converted<float>(raw);
    case Type::bf16: return converted<bf16>(raw);
    case Type::i64: return converted<int64_t>(raw);
    case Type::i32: return converted<int32_t>(raw);
    case Type::i16: return converted<int16_t>(raw);
    case Type::i8: return converted<int8_t>(raw);
    case Type::u64: return converted<uint64_t>(raw);
    case Type::u32: return converted<uint32_t>(raw);
    case Type::u16: return converted<uint16_t>(raw);
    case Type::u8:
    case Type::boolean: return converted<uint8_t>(raw);
    case Type::f16: break;
  }
  std::vector<float> values(raw.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, raw.data() + 2 * i, 2);
    values[i] = from_half(half);
  }
  return values;
}

void SafetensorsFile::fail(const Entry& entry, const std::string& what) const {
  throw IoError(fmt::format("{}: tensor '{}': {}", parts_[entry.file].file->path().string(),
                            entry.name, what));
}

Shape SafetensorsFile::shape_of(const Entry& entry) const {
  if (entry.shape.size() > Shape::kMaxRank)
    fail(entry, fmt::format("{} dimensions, at most {} can be used", entry.shape.size(),
                            +Shape::kMaxRank));
  return Shape(entry.shape);
}

NamedTensor SafetensorsFile::read(const Entry& entry) const {
  DType dtype = DType::f32;
  switch (entry.type) {
    case Type::f32: break;
    case Type::bf16: dtype = DType::bf16; break;
    case Type::i32: dtype = DType::i32; break;
    case Type::u8: dtype = DType::u8; break;
    default:
      fail(entry, fmt::format("type {} is not one of F32, BF16, I32, U8", name_of(entry.type)));
  }
  return {entry.name, {dtype, shape_of(entry), {}}, bytes(entry)};
}

NamedTensor SafetensorsFile::read_as_f32(const Entry& entry) const {
  const std::vector<float> values = read_f32(entry);
  const auto raw = std::as_bytes(std::span(values));
  return {entry.name, {DType::f32, shape_of(entry), {}}, {raw.begin(), raw.end()}};
}

}  // namespace tutti::keep
