#pragma once
// The types of error.h as values, to send one to another rank or keep one in a record.

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace tutti {

enum class ErrorType : uint32_t { config, io, intact, device, comm, numeric, internal, other };

ErrorType type_of(const std::exception& error);
/// Returns the name, such as "NumericError", as docs/errors.md lists it; empty for `other`.
std::string_view name(ErrorType type);
/// Throws the error of this type; Error for `other`.
[[noreturn]] void throw_error(ErrorType type, const std::string& message);

}  // namespace tutti
