#pragma once
// The error policy of the whole system (docs/errors.md): a broken invariant is a bug and throws
// InternalError through CHECK; everything the outside world can cause is one of the typed
// exceptions below. main prints one line and maps the type to an exit code. Destructors never
// throw.

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace tutti {

/// Exit codes of the binary; scripts and schedulers rely on them.
enum class ExitCode : int {
  done = 0,           ///< finished; the target was reached if one was given
  failure = 1,        ///< run-time failure
  usage = 2,          ///< wrong flags or configuration
  target_missed = 3,  ///< ran to its end without reaching the target
  requeue = 75,       ///< stopped early, checkpoint written
};

/// Base of all errors that name a cause outside this program (or a bug, for InternalError).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual ExitCode exit_code() const noexcept { return ExitCode::failure; }
};

/// A flag, key, value or shape that the user must change.
class ConfigError : public Error {
 public:
  using Error::Error;
  ExitCode exit_code() const noexcept override { return ExitCode::usage; }
};

/// A file that is missing, truncated, corrupted or cannot be written; the message names it.
class IoError : public Error {
  using Error::Error;
};

/// A file that cannot be used now although nothing shows that it is damaged: the system refuses it,
/// or a later version wrote it. Code that replaces a damaged file by an older one passes this error
/// on.
class IntactFileError : public IoError {
  using IoError::IoError;
};

/// Returns the system's reason for an errno of a file operation and, if known, what to do.
std::string file_error(int error);

/// A device or kernel library that refused; the message names the operation and its shapes.
class DeviceError : public Error {
  using Error::Error;
};

/// A rank or transport that failed; the message names rank, host and operation.
class CommError : public Error {
  using Error::Error;
};

/// Training went wrong numerically (a NaN loss); the message names rank, step and layer.
class NumericError : public Error {
  using Error::Error;
};

/// A broken invariant: a bug in this program.
class InternalError : public Error {
  using Error::Error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace tutti

/// CHECK(cond) or CHECK(cond, "format {}", args...): throws InternalError. For invariants, not for
/// input.
#define CHECK(condition, ...)                                             \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::tutti::check_failed(__FILE__, __LINE__, #condition,               \
                            ::tutti::detail::check_message(__VA_ARGS__)); \
  } while (false)

namespace tutti::detail {
inline std::string check_message() { return {}; }
template <class... Args>
std::string check_message(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}
}  // namespace tutti::detail
