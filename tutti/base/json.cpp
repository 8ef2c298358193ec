#include "tutti/base/json.h"

#include <fmt/format.h>

#include <istream>
#include <set>
#include <utility>

#include "tutti/base/json_words.h"
#include "tutti/base/visible.h"

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

std::map<std::string, Json> parse_members(std::string_view text) {
  using Event = Json::parse_event_t;
  std::map<std::string, Json> members;
  std::string key;
  // Members taken here are left out of the parsed object, because the parser scans all members it
  // has at the end of each.
  const Json rest = Json::parse(text, [&](int depth, Event event, Json& parsed) {
    if (depth != 1 || event == Event::object_start || event == Event::array_start) return true;
    if (event == Event::key) {
      key = parsed.get<std::string>();
      if (members.contains(key)) throw RepeatedKey(key);
      return true;
    }
    members[key] = std::move(parsed);
    return false;
  });
  if (!rest.is_object()) throw IoError("not a JSON object");
  return members;
}

std::map<std::string, int64_t> parse_numbers(std::string_view text) try {
  using Event = Json::parse_event_t;
  std::map<std::string, int64_t> numbers;
  std::string key;
  // The parser is told to keep no member, because for each one that it keeps it scans all.
  const Json rest = Json::parse(text, [&](int depth, Event event, Json& parsed) {
    if (depth == 0) return true;
    if (event == Event::key) {
      key = parsed.get<std::string>();
      if (numbers.contains(key)) throw RepeatedKey(key);
    } else if (event == Event::value) {
      numbers[key] = json_value<int64_t>(parsed);
    } else if (event == Event::object_start || event == Event::array_start) {
      throw IoError(fmt::format("'{}' is no whole number", key));
    }
    return false;
  });
  if (!rest.is_object()) throw IoError("not a JSON object");
  return numbers;
} catch (const Json::out_of_range& error) {  // 1e999 is no double either
  throw IoError(error.what());
}

std::string json_words(const std::exception& error) {
  const std::string text = error.what();
  const size_t end = text.starts_with("[json.") ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

void throw_no_whole_number(const Json& json) {
  throw IoError(fmt::format("{} is no whole number, or too large a one", print_json(json)));
}

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
  return with_unicode_escapes(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

std::string as_utf8(std::string_view text) {
  return parse_json(print_json(std::string(text))).get<std::string>();
}

}  // namespace tutti
