#include "tutti/base/own_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/base/random_bits.h"

namespace tutti {

namespace fs = std::filesystem;

std::string why_foreign(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fmt::format("it belongs to another user (uid {})", status.st_uid);
  // The sticky bit keeps others from renaming what is there, not from adding what is not.
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !S_ISLNK(status.st_mode))
    return "other users can write to it";
  return "";
}

void make_own_folder(const fs::path& folder) {
  std::error_code failed;
  // A path that ends in a slash has an empty last name.
  const fs::path plain = folder.has_filename() ? folder : folder.parent_path();
  if (plain.has_parent_path()) fs::create_directories(plain.parent_path(), failed);
  if (::mkdir(plain.c_str(), 0700) != 0 && errno != EEXIST)
    throw IoError(fmt::format("cannot make the folder {}: {}", folder.string(), file_error(errno)));
  struct stat status {};
  if (::stat(plain.c_str(), &status) != 0)
    throw IoError(
        fmt::format("the folder {} cannot be looked at: {}", folder.string(), file_error(errno)));
  if (!S_ISDIR(status.st_mode))
    throw IoError(fmt::format("{} is no folder: choose another name", folder.string()));
  if (const std::string why = why_foreign(status); !why.empty())
    throw IoError(fmt::format(
        "the folder {} is not used: {}, so what lies there may be another user's; name a folder of "
        "your own (a new one is made for you alone){}",
        folder.string(), why,
        status.st_uid == ::geteuid()
            ? fmt::format(", or, if all that is in it is yours, 'chmod go-w {}'", folder.string())
            : ""));
}

int open_own_file(const fs::path& file, int flags) {
  const int descriptor = ::open(file.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (descriptor < 0)
    throw IoError(fmt::format(
        "{}: cannot be opened: {}", file.string(),
        errno == ELOOP ? "it is a symbolic link, which is not followed here" : file_error(errno)));
  struct stat status {};
  std::string why;
  if (::fstat(descriptor, &status) != 0)
    why = fmt::format("fstat: {}", file_error(errno));
  else if (status.st_uid != ::geteuid() && status.st_uid != 0)
    why = fmt::format("it belongs to another user (uid {})", status.st_uid);
  else if (!S_ISREG(status.st_mode))
    why = "it is no regular file";
  if (why.empty()) return descriptor;
  ::close(descriptor);
  throw IoError(fmt::format("{}: is not used: {}", file.string(), why));
}

std::string random_name() {
  std::array<uint64_t, 2> random{};
  CHECK(fill_random(std::as_writable_bytes(std::span(random))), "getrandom: {}", file_error(errno));
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

}  // namespace tutti
