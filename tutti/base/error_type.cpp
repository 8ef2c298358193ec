#include "tutti/base/error_type.h"

#include <array>

#include "tutti/base/error.h"

namespace tutti {

ErrorType type_of(const std::exception& error) {
  if (dynamic_cast<const ConfigError*>(&error)) return ErrorType::config;
  if (dynamic_cast<const IntactFileError*>(&error)) return ErrorType::intact;
  if (dynamic_cast<const IoError*>(&error)) return ErrorType::io;
  if (dynamic_cast<const DeviceError*>(&error)) return ErrorType::device;
  if (dynamic_cast<const CommError*>(&error)) return ErrorType::comm;
  if (dynamic_cast<const NumericError*>(&error)) return ErrorType::numeric;
  if (dynamic_cast<const InternalError*>(&error)) return ErrorType::internal;
  return ErrorType::other;
}

std::string_view name(ErrorType type) {
  constexpr std::array<std::string_view, 8> kNames = {
      "ConfigError", "IoError",      "IntactFileError", "DeviceError",
      "CommError",   "NumericError", "InternalError",   ""};
  return kNames.at(static_cast<size_t>(type));
}

void throw_error(ErrorType type, const std::string& message) {
  switch (type) {
    case ErrorType::config: throw ConfigError(message);
    case ErrorType::io: throw IoError(message);
    case ErrorType::intact: throw IntactFileError(message);
    case ErrorType::device: throw DeviceError(message);
    case ErrorType::comm: throw CommError(message);
    case ErrorType::numeric: throw NumericError(message);
    case ErrorType::internal: throw InternalError(message);
    default: throw Error(message);
  }
}

}  // namespace tutti
