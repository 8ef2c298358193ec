#include "tutti/base/own_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <ext/stdio_filebuf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/random_bits.h"
#include "tutti/base/small_text.h"

namespace tutti {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // the same limit as the system's

/// Suggests removing pipes and sockets, which users leave behind, but not devices.
std::string no_regular_file(mode_t mode) {
  return fmt::format("it is a {}, no regular file{}", kind_of_file(mode),
                     S_ISFIFO(mode) || S_ISSOCK(mode) ? ": remove it" : "");
}

/// Returns why open(2) has failed: a pipe without a reader says "no such device or address".
std::string why_not_open(const fs::path& file, int error) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0) return file_error(error);
  if (error == ELOOP && S_ISLNK(status.st_mode))
    return "it is a symbolic link, which is not followed here";
  if (error == ENXIO && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
    return no_regular_file(status.st_mode);
  return file_error(error);
}

[[noreturn]] void refuse_output(const fs::path& name, const std::string& why) {
  throw IoError(fmt::format("{}: cannot be written: {}", name.string(), why));
}

/// Calls open(2) so that it follows no link in the last place and does not wait for a pipe's other
/// end. If another process holds a lease of the file, or an NFS client a delegation, it waits until
/// that is given back.
int open_unfollowed(const fs::path& path, int flags, mode_t mode) {
  flags |= O_NOFOLLOW | O_CLOEXEC;
  const int file = ::open(path.c_str(), flags | O_NONBLOCK, mode);
  if (file >= 0 || errno != EWOULDBLOCK) return file;
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    return ::open(path.c_str(), flags, mode);
  errno = EWOULDBLOCK;
  return -1;
}

struct Opened {
  int descriptor = -1;
  bool made = false;  // created by this call
};

/// With O_CREAT, creates the file or opens the existing one.
Opened open_or_make(const fs::path& file, int flags, mode_t mode) {
  const int existing = flags & ~(O_CREAT | O_TRUNC);
  if ((flags & O_CREAT) == 0) return {open_unfollowed(file, existing, mode)};
  for (bool again = false;; again = true) {
    const int made = open_unfollowed(file, flags | O_EXCL, mode);
    if (made >= 0 || (flags & O_EXCL) != 0) return {made, made >= 0};
    const int why = errno;
    const int found = open_unfollowed(file, existing, mode);
    if (found >= 0 || errno != ENOENT) return {found};
    if (why == EEXIST && !again) continue;  // removed in between
    errno = why;
    return {};
  }
}

/// Makes a stream that owns the descriptor. File streams have no function for that, but a
/// std::filebuf of libstdc++ has, and it can be moved.
template <class Stream>
Stream stream_of(int descriptor, std::ios::openmode mode) {
  __gnu_cxx::stdio_filebuf<char> buffer(descriptor, mode | std::ios::binary);
  CHECK(buffer.is_open(), "no memory for a stream");
  Stream stream;
  static_cast<std::filebuf&>(*stream.rdbuf()) = std::move(buffer);
  return stream;
}

/// Returns where a link of this name leads; nothing if it is no link.
std::optional<fs::path> target_of_own_link(const fs::path& name) {
  // The link itself is held open, so that owner and target belong to the same link.
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

/// Duplicates the descriptor.
int second_of(int descriptor, const fs::path& name) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  const bool reads_only = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
  const int second = flags < 0 || reads_only ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (second < 0) refuse_output(name, file_error(reads_only ? EBADF : errno));
  return second;
}

}  // namespace

bool is_foreign_owner(uid_t owner) { return owner != ::geteuid() && owner != 0; }

std::string why_foreign(const struct stat& status) {
  if (is_foreign_owner(status.st_uid))
    return fmt::format("it belongs to another user (uid {})", status.st_uid);
  // The sticky bit keeps others from renaming existing files, not from adding new ones.
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
  const auto [descriptor, made] = open_or_make(file, flags, mode);
  if (made) return descriptor;
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
    why = no_regular_file(status.st_mode);
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

std::optional<int> descriptor_of(const fs::path& path) {
  // Some systems have links of these names, but they lead to no path that could be opened instead:
  // "pipe:[4711]", or a file whose content would be lost.
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  const fs::path folder = path.parent_path();
  if (folder != "/dev/fd" && folder != "/proc/self/fd") return std::nullopt;
  const std::string digits = path.filename().string();
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

fs::path followed_output(const fs::path& name) {
  fs::path path = name;
  for (int links = 0; links <= kMostLinks; ++links) {
    const auto target = descriptor_of(path) ? std::nullopt : target_of_own_link(path);
    if (!target) return path;
    path = *target;
  }
  refuse_output(name, file_error(ELOOP));
}

int open_output(const fs::path& name, int flags) {
  const fs::path path = followed_output(name);
  if (const auto descriptor = descriptor_of(path)) return second_of(*descriptor, name);
  const int file = open_unfollowed(path, flags, 0666);
  if (file < 0) refuse_output(name, why_not_open(path, errno));
  struct stat status {};
  std::string why;
  if (::fstat(file, &status) != 0)
    why = fmt::format("fstat: {}", file_error(errno));
  else if (S_ISREG(status.st_mode))
    return file;
  else if (!S_ISCHR(status.st_mode))
    why = no_regular_file(status.st_mode);
  else if (::fcntl(file, F_SETFL, flags & O_APPEND) == 0)  // writers wait for a terminal
    return file;
  else
    why = fmt::format("fcntl: {}", file_error(errno));
  ::close(file);
  refuse_output(name, why);
}

std::ofstream output_stream(const fs::path& name, std::ios::openmode mode) {
  const int flags = O_WRONLY | O_CREAT | ((mode & std::ios::app) != 0 ? O_APPEND : O_TRUNC);
  return stream_of<std::ofstream>(open_output(name, flags), std::ios::out);
}

std::string random_name() {
  std::array<uint64_t, 2> random{};
  CHECK(fill_random(std::as_writable_bytes(std::span(random))), "getrandom: {}", file_error(errno));
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

}  // namespace tutti
