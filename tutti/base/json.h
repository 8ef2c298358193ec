#pragma once
// JSON, by nlohmann's library. Reading and printing are the larger part of it and are compiled
// once, here; so nothing else calls its parse() and dump().

#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/json_forward.h"

namespace tutti {

/// A key of the outermost object that stands there twice: JSON leaves open what that means.
struct RepeatedKey : IoError {
  explicit RepeatedKey(std::string repeated);
  std::string key;
};

/// Throws Json::parse_error for what is no JSON, and RepeatedKey.
Json parse_json(std::string_view text);
Json parse_json(std::istream& stream);

/// The members of an object that may have a great many. Json keeps their order, and so looks
/// through all of them for each. Throws as parse_json does, and IoError for what is no object.
std::map<std::string, Json> parse_members(std::string_view text);

/// As parse_json; null where it would throw.
Json json_or_null(std::string_view text);

/// In one line, or indented by `indent` spaces a level. Bytes that are no UTF-8 (names and paths
/// may hold them) become U+FFFD.
std::string print_json(const Json& json, int indent = -1);
/// A text with such bytes replaced; equal to `text` where there are none.
std::string as_utf8(std::string_view text);

}  // namespace tutti
