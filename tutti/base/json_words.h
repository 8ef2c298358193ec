#pragma once
// The messages of the library behind json.h.

#include <exception>
#include <string>

namespace tutti {

/// Returns the text of a Json::exception without the name in front of it: "parse error at line 1,
/// column 2: ...".
std::string json_words(const std::exception& error);

}  // namespace tutti
