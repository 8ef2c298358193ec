#include "tutti/train/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/train/durable_file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& name, int error) {
  throw IoError(fmt::format("{}: cannot be written: {}", name.string(), file_error(error)));
}

/// The N of /dev/fd/N. There is a link of this name in some systems, but it leads to no path: it
/// reads "pipe:[4711]", or names a file whose present content would be lost by opening it again.
std::optional<int> descriptor_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  if (folder != "/dev/fd" && folder != "/proc/self/fd") return std::nullopt;
  const std::string digits = path.filename().string();
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Where links lead that `name` begins.
fs::path followed(const fs::path& name) {
  fs::path path = name;
  for (int hops = 0; hops < 40; ++hops) {
    const auto target = descriptor_of(path) ? std::nullopt : target_of_own_link(path);
    if (!target) return path;
    path = *target;
  }
  refuse(name, ELOOP);
}

/// Whether it is there and is neither a file that a rename may replace nor a folder.
bool is_special(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

std::optional<int> descriptor_named(const fs::path& name) { return descriptor_of(followed(name)); }

void check_result_file(const fs::path& name) {
  const fs::path path = followed(name);
  if (const auto descriptor = descriptor_of(path)) {
    const int flags = ::fcntl(*descriptor, F_GETFL);
    if (flags < 0) refuse(name, errno);
    if ((flags & O_ACCMODE) == O_RDONLY) refuse(name, EBADF);
    return;
  }
  std::error_code none;
  if (fs::is_directory(path, none)) refuse(name, EISDIR);
  const fs::path folder = path.parent_path().empty() ? "." : path.parent_path();
  if (::access(is_special(path) ? path.c_str() : folder.c_str(), W_OK) != 0) refuse(name, errno);
}

void write_result_file(const fs::path& name, std::string_view text) {
  check_result_file(name);
  const fs::path path = followed(name);
  const auto descriptor = descriptor_of(path);
  if (!descriptor && !is_special(path)) return replace_file(path, text);
  std::fflush(nullptr);  // what is printed already stands before
  DurableFile file = DurableFile(name, descriptor ? ::fcntl(*descriptor, F_DUPFD_CLOEXEC, 0)
                                                  : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  file.write(text);
  file.close();
}

}  // namespace tutti
