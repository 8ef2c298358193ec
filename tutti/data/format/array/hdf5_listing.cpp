#include "tutti/data/format/array/hdf5_listing.h"

#include <cstring>
#include <type_traits>

namespace tutti::data {
namespace {

/// Writing and reading walk the same fields in the same order.
class ListingWriter {
 public:
  template <class T>
  void number(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* at = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), at, at + sizeof(T));
  }
  template <class T>
  void list(const std::vector<T>& values) {
    number(values.size());
    const auto* at = reinterpret_cast<const uint8_t*>(values.data());
    bytes.insert(bytes.end(), at, at + values.size() * sizeof(T));
  }
  void text(const std::string& value) { list(std::vector<char>(value.begin(), value.end())); }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  void attributes(const std::map<std::string, ArrayAttribute>& values) {
    number(values.size());
    for (const auto& [name, value] : values) text(name), list(value.numbers), text(value.text);
  }
  void circles(const NameCircles& values) {
    number(values.size());
    for (const auto& [name, path] : values) text(name), text(path);
  }

  std::vector<uint8_t> bytes;
};

class ListingReader {
 public:
  ListingReader(std::span<const uint8_t> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  template <class T>
  void number(T& value) {
    take(&value, sizeof(T));
  }
  template <class T>
  void list(std::vector<T>& values) {
    values.resize(count(sizeof(T)));
    take(values.data(), values.size() * sizeof(T));
  }
  void text(std::string& value) {
    value.resize(count(1));
    take(value.data(), value.size());
  }
  void texts(std::vector<std::string>& values) {
    values.resize(count(sizeof(size_t)));
    for (std::string& value : values) text(value);
  }
  void attributes(std::map<std::string, ArrayAttribute>& values) {
    for (size_t left = count(1); left > 0; --left) {
      std::string name;
      text(name);
      ArrayAttribute& value = values[name];
      list(value.numbers), text(value.text);
    }
  }
  void circles(NameCircles& values) {
    for (size_t left = count(1); left > 0; --left) {
      std::string name;
      text(name);
      text(values[name]);
    }
  }
  size_t count(size_t element) {
    size_t found = 0;
    number(found);
    if (found > bytes_.size() / element) refuse();
    return found;
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }

 private:
  void take(void* out, size_t count) {
    if (count > bytes_.size()) refuse();
    if (count > 0) std::memcpy(out, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
  }
  [[noreturn]] void refuse() const {
    throw BadFile(
        "{}: the child process that read its headers did not report them completely: the file is "
        "corrupted; fetch it again",
        file_);
  }

  std::span<const uint8_t> bytes_;
  const std::string& file_;
};

template <class Walker, class Set>
void walk_fields(Walker& w, Set& set) {
  w.text(set.info.name), w.number(set.info.type), w.list(set.info.shape), w.list(set.info.chunk);
  w.texts(set.info.dimensions), w.attributes(set.info.attributes), w.text(set.info.problem);
  w.text(set.info.link), w.text(set.file);
  w.number(set.swapped), w.number(set.layout), w.number(set.first), w.list(set.inside);
  w.list(set.filters), w.number(set.bare_edges), w.list(set.chunks), w.list(set.fill);
  w.list(set.unlimited);
}

}  // namespace

std::vector<uint8_t> to_bytes(const Hdf5Listing& listing) {
  ListingWriter writer;
  writer.text(listing.error), writer.number(listing.damaged), writer.number(listing.netcdf);
  writer.circles(listing.circles);
  writer.number(listing.sets.size());
  for (const Hdf5DataSet& set : listing.sets) walk_fields(writer, set);
  return std::move(writer.bytes);
}

Hdf5Listing hdf5_listing_from(std::span<const uint8_t> bytes, const std::string& file) {
  ListingReader reader(bytes, file);
  Hdf5Listing listing;
  reader.text(listing.error), reader.number(listing.damaged), reader.number(listing.netcdf);
  reader.circles(listing.circles);
  for (size_t left = reader.count(1); left > 0; --left)
    walk_fields(reader, listing.sets.emplace_back());
  reader.end();
  return listing;
}

}  // namespace tutti::data
