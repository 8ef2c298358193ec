#include "tutti/base/own_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "tutti/base/error.h"
#include "tutti/base/random_bits.h"
#include "tutti/base/small_text.h"

namespace tutti {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as the system has it

/// Why open(2) has failed: a pipe without a reader says "no such device or address".
std::string why_not_open(const fs::path& file, int error) {
  if (error == ELOOP) return "it is a symbolic link, which is not followed here";
  struct stat status {};
  const bool known = ::lstat(file.c_str(), &status) == 0;
  if (!known || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return file_error(error);
  return fmt::format("it is a {}, no regular file: remove it", kind_of_file(status.st_mode));
}

[[noreturn]] void refuse_output(const fs::path& name, const std::string& why) {
  throw IoError(fmt::format("{}: cannot be written: {}", name.string(), why));
}

bool is_foreign_owner(uid_t owner) { return owner != ::geteuid() && owner != 0; }

/// A descriptor as a stream's file, and closed. There is no other way from one to the other.
template <class Stream>
Stream stream_of(int descriptor, std::ios::openmode mode) {
  Stream stream(fmt::format("/proc/self/fd/{}", descriptor), mode | std::ios::binary);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return stream;
}

}  // namespace

std::string why_foreign(const struct stat& status) {
  if (is_foreign_owner(status.st_uid))
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

int open_own_file(const fs::path& file, int flags, mode_t mode) {
  const int descriptor =
      ::open(file.c_str(), (flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
  if (descriptor < 0)
    throw IoError(
        fmt::format("{}: cannot be opened: {}", file.string(), why_not_open(file, errno)));
  struct stat status {};
  std::string why;
  if (::fstat(descriptor, &status) != 0)
    why = fmt::format("fstat: {}", file_error(errno));
  else if (is_foreign_owner(status.st_uid))
    why = fmt::format("it belongs to another user (uid {})", status.st_uid);
  else if (!S_ISREG(status.st_mode))
    why = fmt::format("it is a {}, no regular file", kind_of_file(status.st_mode));
  else if ((flags & O_TRUNC) != 0 && ::ftruncate(descriptor, 0) != 0)
    why = fmt::format("it cannot be emptied: {}", file_error(errno));
  if (why.empty()) return descriptor;
  ::close(descriptor);
  throw IoError(fmt::format("{}: is not used: {}", file.string(), why));
}

std::ifstream own_input(const fs::path& file) {
  if (std::error_code none; !fs::exists(fs::symlink_status(file, none))) return {};
  return stream_of<std::ifstream>(open_own_file(file, O_RDONLY), std::ios::in);
}

std::optional<fs::path> target_of_own_link(const fs::path& name) {
  // The link itself is held open, so that its owner and its target are those of one link.
  const int link = ::open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  std::array<char, PATH_MAX> text{};
  const bool known = link >= 0 && ::fstat(link, &status) == 0 && S_ISLNK(status.st_mode);
  const ssize_t bytes = known ? ::readlinkat(link, "", text.data(), text.size()) : -1;
  if (link >= 0) ::close(link);
  if (!known) return std::nullopt;
  if (is_foreign_owner(status.st_uid))
    refuse_output(name,
                  fmt::format("it is a symbolic link of another user's (uid {}), which is not "
                              "followed: remove it, or write to a folder of your own",
                              status.st_uid));
  return name.parent_path() / fs::path(text.data(), text.data() + std::max<ssize_t>(bytes, 0));
}

int open_output(const fs::path& name, int flags) {
  fs::path path = name;
  for (int links = 0;; ++links) {
    // Links there are this process's own descriptors, and lead to no path.
    const fs::path folder = path.parent_path();
    const bool own = folder == "/dev/fd" || folder == "/proc/self/fd";
    const int file =
        ::open(path.c_str(), flags | (own ? 0 : O_NOFOLLOW) | O_CLOEXEC | O_NONBLOCK, 0666);
    const int error = errno;
    if (file < 0) {
      const auto target = error == ELOOP && links < kMostLinks ? target_of_own_link(path)
                                                               : std::optional<fs::path>();
      if (!target)
        refuse_output(name, error == ELOOP ? file_error(error) : why_not_open(path, error));
      path = *target;
      continue;
    }
    struct stat status {};
    if (own ||
        (::fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode))))
      return file;
    ::close(file);
    refuse_output(
        name, fmt::format("it is a {}, no regular file: remove it", kind_of_file(status.st_mode)));
  }
}

std::ofstream output_stream(const fs::path& name, std::ios::openmode mode) {
  const bool appends = (mode & std::ios::app) != 0;
  auto stream = stream_of<std::ofstream>(
      open_output(name, O_WRONLY | O_CREAT | (appends ? O_APPEND : O_TRUNC)),
      appends ? std::ios::app : std::ios::trunc);
  if (!stream) refuse_output(name, file_error(errno));
  return stream;
}

std::string random_name() {
  std::array<uint64_t, 2> random{};
  CHECK(fill_random(std::as_writable_bytes(std::span(random))), "getrandom: {}", file_error(errno));
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

}  // namespace tutti
