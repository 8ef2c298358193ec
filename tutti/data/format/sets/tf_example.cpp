#include "tutti/data/format/sets/tf_example.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace tutti::data {
namespace {

constexpr size_t kMostFeatures = 1 << 16;

enum class Wire : uint8_t { varint = 0, eight = 1, bytes = 2, four = 5 };

/// One field of a message.
struct WireField {
  uint64_t number = 0;
  Wire wire = Wire::varint;
  uint64_t value = 0;                ///< the value of a varint
  std::span<const uint8_t> bytes{};  ///< the content of all other types
};

/// Parses a message field by field.
class ProtoText {
 public:
  ProtoText(std::span<const uint8_t> bytes, std::string_view what) : rest_(bytes), what_(what) {}

  bool next(WireField& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3, .wire = static_cast<Wire>(tag & 7)};
    switch (field.wire) {
      case Wire::varint: field.value = varint(); break;
      case Wire::eight: field.bytes = take(8); break;
      case Wire::four: field.bytes = take(4); break;
      case Wire::bytes: field.bytes = take(varint()); break;
      default: refuse(fmt::format("a field of the unknown wire type {}", tag & 7));
    }
    if (field.number == 0) refuse("a field with the number 0");
    return true;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const uint8_t byte = take(1)[0];
      value |= shift < 64 ? uint64_t{byte & 0x7fu} << shift : 0;
      if (byte < 0x80) return value;
    }
    refuse("a number of more than 10 bytes");
  }

  bool empty() const { return rest_.empty(); }

  [[noreturn]] void refuse(const std::string& found) const {
    throw BadFile(
        "{}: expected a tf.Example, found {}: the record is corrupted or holds something else",
        what_, found);
  }

 private:
  std::span<const uint8_t> take(uint64_t count) {
    if (count > rest_.size())
      refuse(fmt::format("a field of {} bytes where {} are left", count, rest_.size()));
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  std::span<const uint8_t> rest_;
  std::string_view what_;
};

void read_floats(std::span<const uint8_t> bytes, std::vector<float>& floats) {
  const size_t before = floats.size();
  floats.resize(before + bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(floats.data() + before, bytes.data(), bytes.size());
}

/// Reads a BytesList, FloatList or Int64List.
void read_list(const WireField& list, std::string_view what, TfFeature& feature) {
  ProtoText text(list.bytes, what);
  WireField field;
  while (text.next(field)) {
    if (field.number != 1) continue;
    const bool packed = field.wire == Wire::bytes;
    if (list.number == 1 && packed) {
      feature.bytes.push_back(field.bytes);
    } else if (list.number == 2 && (packed || field.wire == Wire::four)) {
      if (field.bytes.size() % 4 != 0)
        text.refuse(fmt::format("{} bytes of floats", field.bytes.size()));
      read_floats(field.bytes, feature.floats);
    } else if (list.number == 3 && field.wire == Wire::varint) {
      feature.integers.push_back(static_cast<int64_t>(field.value));
    } else if (list.number == 3 && packed) {
      ProtoText numbers(field.bytes, what);
      while (!numbers.empty()) feature.integers.push_back(static_cast<int64_t>(numbers.varint()));
    } else {
      text.refuse(fmt::format("a value of wire type {} in list {}", static_cast<int>(field.wire),
                              list.number));
    }
  }
}

void read_feature(std::span<const uint8_t> bytes, std::string_view what, TfFeature& feature) {
  ProtoText text(bytes, what);
  WireField field;
  while (text.next(field)) {
    if (field.number < 1 || field.number > 3) continue;
    if (field.wire != Wire::bytes) text.refuse("a list that is a number");
    const auto kind = static_cast<TfFeature::Kind>(field.number);
    if (feature.kind != kind) {  // the last kind counts; lists of one kind are joined
      feature.bytes.clear(), feature.floats.clear(), feature.integers.clear();
      feature.kind = kind;
    }
    read_list(field, what, feature);
  }
}

TfFeature read_entry(std::span<const uint8_t> bytes, std::string_view what) {
  TfFeature feature;
  ProtoText text(bytes, what);
  WireField field;
  while (text.next(field)) {
    if (field.number > 2) continue;
    if (field.wire != Wire::bytes) text.refuse("a feature that is a number");
    if (field.number == 1)
      feature.name.assign(field.bytes.begin(), field.bytes.end());
    else
      read_feature(field.bytes, what, feature);
  }
  return feature;
}

/// Says whether all names are known to differ. Records usually have few features: their pairs are
/// compared, which takes no memory; with more features it is not known.
bool are_few_that_differ(std::span<const TfFeature> features) {
  constexpr size_t kFew = 32;
  if (features.size() > kFew) return false;
  for (size_t i = 1; i < features.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (features[i].name == features[j].name) return false;
  return true;
}

/// Keeps the last of several features with one name, as in maps of Protocol Buffers.
void keep_last(std::vector<TfFeature>& features) {
  if (are_few_that_differ(features)) return;
  std::unordered_map<std::string_view, const TfFeature*> last;
  for (const TfFeature& feature : features) last[feature.name] = &feature;
  if (last.size() == features.size()) return;
  std::vector<TfFeature> kept;
  for (const TfFeature& feature : features)
    if (last[feature.name] == &feature) kept.push_back(feature);
  features = std::move(kept);
}

std::string_view kind_name(TfFeature::Kind kind) {
  switch (kind) {
    case TfFeature::Kind::none: return "no values";
    case TfFeature::Kind::bytes: return "texts of bytes";
    case TfFeature::Kind::floats: return "floats";
    case TfFeature::Kind::integers: return "integers";
  }
  return "?";
}

using Message = std::vector<uint8_t>;

void put_varint(Message& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<uint8_t>(value | 0x80));
  to.push_back(static_cast<uint8_t>(value));
}

void put_field(Message& to, uint64_t number, std::span<const uint8_t> bytes) {
  put_varint(to, number << 3 | static_cast<uint64_t>(Wire::bytes));
  put_varint(to, bytes.size());
  to.insert(to.end(), bytes.begin(), bytes.end());
}

Message feature_message(const TfFeature& feature) {
  Message list, message;
  if (feature.kind == TfFeature::Kind::none) return message;
  for (const auto& bytes : feature.bytes) put_field(list, 1, bytes);
  if (!feature.floats.empty()) {
    const auto* at = reinterpret_cast<const uint8_t*>(feature.floats.data());
    put_field(list, 1, {at, feature.floats.size() * 4});
  }
  if (!feature.integers.empty()) {
    Message packed;
    for (const int64_t value : feature.integers) put_varint(packed, static_cast<uint64_t>(value));
    put_field(list, 1, packed);
  }
  put_field(message, static_cast<uint64_t>(feature.kind), list);
  return message;
}

}  // namespace

std::vector<TfFeature> parse_example(std::span<const uint8_t> record, std::string_view what) {
  std::vector<TfFeature> features;
  ProtoText example(record, what);
  WireField field, entry;
  while (example.next(field)) {
    if (field.number != 1) continue;
    if (field.wire != Wire::bytes) example.refuse("features that are a number");
    ProtoText text(field.bytes, what);
    while (text.next(entry)) {
      if (entry.number != 1) continue;
      if (entry.wire != Wire::bytes) text.refuse("a feature that is a number");
      if (features.size() == kMostFeatures)
        text.refuse(fmt::format("more than {} features", kMostFeatures));
      features.push_back(read_entry(entry.bytes, what));
    }
  }
  keep_last(features);
  return features;
}

const TfFeature& find_feature(const std::vector<TfFeature>& features, std::string_view name,
                              TfFeature::Kind kind, int64_t count, std::string_view what) {
  const auto found = std::ranges::find(features, name, &TfFeature::name);
  if (found == features.end()) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(features.size(), 20); ++i)
      names += fmt::format("{}'{}'", i ? ", " : "", features[i].name);
    throw BadFile("{}: expected a feature '{}', found {}: name one of these, or give another file",
                  what, name, names.empty() ? "none" : names);
  }
  if (found->kind != kind || (count >= 0 && found->values() != static_cast<size_t>(count)))
    throw BadFile(
        "{}: expected feature '{}' with {} {}, found {} {}: the file was written for another model",
        what, name, count < 0 ? "any number of" : std::to_string(count), kind_name(kind),
        found->values(), kind_name(found->kind));
  return *found;
}

std::vector<uint8_t> example_record(std::span<const TfFeature> features) {
  Message entries, record;
  for (const TfFeature& feature : features) {
    Message entry;
    put_field(entry, 1,
              {reinterpret_cast<const uint8_t*>(feature.name.data()), feature.name.size()});
    put_field(entry, 2, feature_message(feature));
    put_field(entries, 1, entry);
  }
  put_field(record, 1, entries);
  return record;
}

}  // namespace tutti::data
