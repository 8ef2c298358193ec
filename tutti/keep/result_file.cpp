#include "tutti/keep/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& name, int error) {
  throw IoError(fmt::format("{}: cannot be written: {}", name.string(), file_error(error)));
}

/// Whether the path exists and is not a regular file, which a rename may replace.
bool is_special(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

std::optional<int> descriptor_named(const fs::path& name) {
  return descriptor_of(followed_output(name));
}

void check_result_file(const fs::path& name) {
  const fs::path path = followed_output(name);
  if (descriptor_of(path)) {
    ::close(open_output(name, O_WRONLY));
    return;
  }
  std::error_code none;
  if (fs::is_directory(path, none)) refuse(name, EISDIR);
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  if (::access(is_special(path) ? path.c_str() : folder.c_str(), W_OK) != 0) refuse(name, errno);
}

void write_result_file(const fs::path& name, std::string_view text) {
  check_result_file(name);
  const fs::path path = followed_output(name);
  const bool descriptor = descriptor_of(path).has_value();
  if (!descriptor && !is_special(path)) return replace_file(path, text);
  std::fflush(nullptr);  // earlier output comes first
  DurableFile file(
      name, descriptor ? open_output(name, O_WRONLY) : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  file.write(text);
  file.close();
}

}  // namespace tutti::keep
