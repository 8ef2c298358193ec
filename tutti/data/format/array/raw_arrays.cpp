#include "tutti/data/format/array/raw_arrays.h"

#include <toml++/toml.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/text_file.h"

namespace tutti::data {
namespace {

constexpr int64_t kMostDescription = 1 << 20;
constexpr size_t kMostRawRank = 32;

/// One [[array]] of a description.
class RawArrayTable {
 public:
  RawArrayTable(const toml::table& table, const std::filesystem::path& description)
      : table_(table), description_(description) {}

  StoredArray read() const {
    constexpr std::array<std::string_view, 6> kKeys = {"name",  "file",   "type",
                                                       "shape", "offset", "byte_order"};
    for (const auto& [key, node] : table_)
      if (std::ranges::find(kKeys, key.str()) == kKeys.end())
        refuse(node, fmt::format("'{}' is no key: expected {}", key.str(), fmt::join(kKeys, ", ")));
    StoredArray array;
    array.info.name = text("name");
    const std::string type = text("type");
    if (!element_type_of(type, array.info.type))
      refuse(*table_.get("type"), fmt::format("type '{}' is unknown: expected bool, i8, u8, i16, "
                                              "u16, i32, u32, i64, u64, f16, bf16, f32 or f64",
                                              type));
    array.info.shape = shape();
    array.first = table_.contains("offset") ? whole("offset") : 0;
    const std::string order = table_.contains("byte_order") ? text("byte_order") : "little";
    if (order != "little" && order != "big")
      refuse(*table_.get("byte_order"), "byte_order is \"little\" or \"big\"");
    array.swapped = order == "big";
    array.file = FileBytes::open(description_.parent_path() / text("file"));
    check_size(array);
    return array;
  }

 private:
  [[noreturn]] void refuse(const toml::node& node, const std::string& what) const {
    throw BadFile("{}:{}: {}", description_.string(), node.source().begin.line, what);
  }

  const toml::node& node(std::string_view key) const {
    const toml::node* found = table_.get(key);
    if (found == nullptr) refuse(table_, fmt::format("this [[array]] needs '{}'", key));
    return *found;
  }

  std::string text(std::string_view key) const {
    const toml::node& found = node(key);
    if (!found.is_string() || found.as_string()->get().empty())
      refuse(found, fmt::format("'{}' must be a text", key));
    return found.as_string()->get();
  }

  int64_t whole_number(const toml::node& found, std::string_view key) const {
    if (!found.is_integer() || found.as_integer()->get() < 0)
      refuse(found, fmt::format("'{}' must hold whole numbers from 0 on", key));
    return found.as_integer()->get();
  }
  int64_t whole(std::string_view key) const { return whole_number(node(key), key); }

  std::vector<int64_t> shape() const {
    const toml::node& found = node("shape");
    const toml::array* list = found.as_array();
    if (list == nullptr || list->size() > kMostRawRank)
      refuse(found, fmt::format("'shape' must be a list of at most {} numbers", kMostRawRank));
    std::vector<int64_t> extents;
    for (const toml::node& extent : *list) extents.push_back(whole_number(extent, "shape"));
    return extents;
  }

  void check_size(StoredArray& array) const {
    const int64_t held = array.file->size() - array.first;
    check_announced(array.info, std::max<int64_t>(held, 0));
    if (held >= 0 && array.info.problem.empty()) return;
    const Content found = first_bytes_of(*array.file).content;
    if (is_pointer(found) || found == Content::html)
      throw BadFile(unreadable(*array.file, Content::unknown, "expected raw numbers"));
    throw BadFile(
        "{}: expected {} [{}] from byte {} on, as {} says, found {} bytes: correct the "
        "description, or fetch the file again",
        array.file->name(), name_of(array.info.type), fmt::join(array.info.shape, ", "),
        array.first, description_.string(), array.file->size());
  }

  const toml::table& table_;
  const std::filesystem::path& description_;
};

}  // namespace

std::vector<StoredArray> read_raw_arrays(const FileBytes& description,
                                         const std::filesystem::path& path) {
  if (description.size() > kMostDescription)
    throw BadFile("{}: expected a description of raw arrays, found {} bytes", description.name(),
                  description.size());
  if (const std::string why = why_no_text(description, "a description of raw arrays as TOML");
      !why.empty())
    throw BadFile(why);
  std::vector<uint8_t> text(static_cast<size_t>(description.size()));
  description.read(0, text);
  toml::table root;
  try {
    root = toml::parse(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()),
                       description.name());
  } catch (const toml::parse_error& error) {
    throw BadFile("{}:{}: {}", description.name(), error.source().begin.line, error.description());
  }
  const toml::array* tables = root["array"].as_array();
  if (root.size() != 1 || tables == nullptr || tables->empty() ||
      !tables->is_homogeneous<toml::table>())
    throw BadFile("{}: expected one [[array]] for each raw array and nothing else",
                  description.name());
  std::vector<StoredArray> arrays;
  std::set<std::string> names;
  for (const toml::node& table : *tables) {
    arrays.push_back(RawArrayTable(*table.as_table(), path).read());
    if (!names.insert(arrays.back().info.name).second)
      throw BadFile("{}: two arrays are named '{}'", description.name(), arrays.back().info.name);
  }
  return arrays;
}

}  // namespace tutti::data
