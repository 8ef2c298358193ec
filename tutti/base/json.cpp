#include "tutti/base/json.h"

#include <fmt/format.h>

#include <istream>
#include <set>
#include <utility>

namespace tutti {

RepeatedKey::RepeatedKey(std::string repeated)
    : IoError(fmt::format("'{}' is named twice", repeated)), key(std::move(repeated)) {}

namespace {

template <class Input>
Json parse(Input&& input) {
  std::set<std::string> keys;
  return Json::parse(input, [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get<std::string>()).second)
      throw RepeatedKey(parsed.get<std::string>());
    return true;
  });
}

}  // namespace

Json parse_json(std::string_view text) { return parse(text); }
Json parse_json(std::istream& stream) { return parse(stream); }

Json json_or_null(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Json::exception&) {
    return nullptr;
  } catch (const RepeatedKey&) {
    return nullptr;
  }
}

std::string print_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tutti
