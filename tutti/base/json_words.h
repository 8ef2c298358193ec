#pragma once
// The words of the library behind json.h, for messages.

#include <exception>
#include <string>

namespace tutti {

/// The text of a Json::exception without the name in front of it: "parse error at line 1, column 2:
/// ...".
std::string json_words(const std::exception& error);

}  // namespace tutti
