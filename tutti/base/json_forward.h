#pragma once
// Declares Json for headers; json.h defines it.

#include <nlohmann/json_fwd.hpp>

namespace tutti {

/// Members keep the order in which they were added or read.
using Json = nlohmann::ordered_json;

}  // namespace tutti
