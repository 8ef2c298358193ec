#pragma once
// JSON, by nlohmann's library. Reading and printing are its larger part and are compiled once,
// here, so no other code calls its parse() and dump().

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/json_forward.h"

namespace tutti {

/// A key that the outermost object has twice, which JSON leaves undefined.
struct RepeatedKey : IoError {
  explicit RepeatedKey(std::string repeated);
  std::string key;
};

/// Throws Json::parse_error if the text is no JSON, and RepeatedKey.
Json parse_json(std::string_view text);
Json parse_json(std::istream& stream);

/// Returns the members of an object that may have very many. (Json keeps their order, and so scans
/// all of them for each.) Throws as parse_json does, and IoError if the text is no object.
std::map<std::string, Json> parse_members(std::string_view text);

/// Does the same for an object with only whole numbers, such as a vocabulary, in a time that grows
/// with their number. Throws IoError for anything else.
std::map<std::string, int64_t> parse_numbers(std::string_view text);

/// Parses as parse_json does; returns null where that would throw.
Json json_or_null(std::string_view text);

/// Throws IoError: "1.5 is no whole number, or too large a one".
[[noreturn]] void throw_no_whole_number(const Json& json);

/// Does json.get<T>() on content of files: takes whole numbers, also in lists, only if T can hold
/// them. Throws IoError for 1.5 and 1e30: the library would truncate them, or convert them with an
/// undefined result.
template <class T>
T json_value(const Json& json) {
  constexpr auto is_whole = []<class N>(const N*) {
    return std::integral<N> && !std::same_as<N, bool>;
  };
  if constexpr (is_whole(static_cast<const T*>(nullptr))) {
    if (!json.is_number_integer()) throw_no_whole_number(json);
    const auto checked = [&](auto value) {
      if (!std::in_range<T>(value)) throw_no_whole_number(json);
      return static_cast<T>(value);
    };
    return json.is_number_unsigned() ? checked(json.get<uint64_t>()) : checked(json.get<int64_t>());
  } else if constexpr (requires(T list) {
                         list.emplace_back();
                         typename T::value_type;
                       }) {
    if (!json.is_array()) return json.get<T>();  // this throws
    T list;
    for (const Json& one : json) list.push_back(json_value<typename T::value_type>(one));
    return list;
  } else {
    return json.get<T>();
  }
}

/// Prints in one line, or indented by `indent` spaces per level. Bytes that are not UTF-8 (names
/// and paths may hold them) become U+FFFD.
std::string print_json(const Json& json, int indent = -1);
/// Returns a text with such bytes replaced; equal to `text` if there are none.
std::string as_utf8(std::string_view text);

}  // namespace tutti
