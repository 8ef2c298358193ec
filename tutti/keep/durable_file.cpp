#include "tutti/keep/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/own_file.h"
#include "tutti/base/small_text.h"

namespace tutti::keep {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), what, file_error(error)));
}

/// Whether an errno after a read describes the file itself: missing, not a file, or on a broken
/// disk. Others describe this process, its rights or the server.
bool is_of_the_file(int error) {
  return error == ENOENT || error == ENOTDIR || error == EISDIR || error == EINVAL ||
         error == ELOOP || error == ENAMETOOLONG || error == EIO || error == ENXIO ||
         error == EUCLEAN || error == EBADMSG;  // the last two: a damaged file system
}

[[noreturn]] void fail_to_read(const std::filesystem::path& path, const char* what, int error) {
  if (is_of_the_file(error)) fail(path, what, error);
  throw IntactFileError(fmt::format("{}: {}: {}", path.string(), what, file_error(error)));
}

/// Throws for a path that exists and is not a regular file.
[[noreturn]] void fail_by_kind(const std::filesystem::path& path, mode_t mode) {
  if (S_ISDIR(mode)) fail(path, "is no file", EISDIR);
  throw IoError(fmt::format("{}: cannot be read: it is a {}, no regular file", path.string(),
                            kind_of_file(mode)));
}

int open_temporary(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path)
    : DurableFile(path, open_output(path, O_WRONLY | O_CREAT | O_TRUNC)) {}

DurableFile::DurableFile(std::filesystem::path path, int descriptor)
    : path_(std::move(path)), fd_(descriptor) {
  if (fd_ < 0) fail(path_, "cannot be created", errno);
  hash_ = XXH64_createState();
  XXH64_reset(hash_, 0);
}

DurableFile::~DurableFile() {
  XXH64_freeState(hash_);
  if (fd_ >= 0) ::close(fd_);
}

void DurableFile::write(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0, "{} is closed", path_.string());
  XXH64_update(hash_, bytes.data(), bytes.size());
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), size_t{1} << 26));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void DurableFile::overwrite(uint64_t offset, std::string_view text) {
  CHECK(fd_ >= 0 && offset + text.size() <= bytes_, "{}: {} bytes", path_.string(), bytes_);
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd_, text.data(), text.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "cannot be written", errno);
    offset += static_cast<uint64_t>(written);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

FileDigest DurableFile::close() {
  // A network file system may report a full disk only here.
  if (!sync_to_disk(fd_)) fail(path_, "cannot be written to the disk", errno);
  if (::close(std::exchange(fd_, -1)) != 0) fail(path_, "cannot be closed", errno);
  return {bytes_, XXH64_digest(hash_)};
}

void expect_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISREG(status.st_mode)) return;
    fail_by_kind(path, status.st_mode);
  }
  if (errno == ENOENT) throw IoError(fmt::format("{}: is missing", path.string()));
  fail_to_read(path, "cannot be looked at", errno);
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // do not wait for a pipe
  if (fd_ < 0) fail_to_read(path_, "cannot be opened", errno);
  struct stat status {};
  const int error = ::fstat(fd_, &status) != 0 ? errno : 0;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    if (error != 0) fail_to_read(path_, "cannot be read", error);
    fail_by_kind(path_, status.st_mode);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd_, bytes.data(), std::min(bytes.size(), size_t{1} << 26),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to_read(path_, "cannot be read", errno);
    if (got == 0)
      throw IoError(fmt::format("{}: ends at byte {}, {} more were expected", path_.string(),
                                offset, bytes.size()));
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

FileDigest digest_of(const std::filesystem::path& path) {
  const InputFile file(path);
  const auto release = [](XXH64_state_t* state) { XXH64_freeState(state); };
  const std::unique_ptr<XXH64_state_t, decltype(release)> hash(XXH64_createState(), release);
  XXH64_reset(hash.get(), 0);
  std::vector<std::byte> block(size_t{1} << 20);
  for (uint64_t offset = 0; offset < file.size(); offset += block.size()) {
    const auto part = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(block.size(), file.size() - offset)));
    file.read(offset, part);
    XXH64_update(hash.get(), part.data(), part.size());
  }
  return {file.size(), XXH64_digest(hash.get())};
}

std::string read_text(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path partial =
      path.parent_path() / fmt::format(".{}.partial-{}", path.filename().string(), unique_ending());
  DurableFile file(path, open_temporary(partial));  // messages give the name that users know
  try {
    file.write(text);
    file.close();
    // Some file systems cannot rename over an existing file: the file is then absent for a moment.
    if (::rename(partial.c_str(), path.c_str()) != 0) {
      const int error = errno;
      if ((error != EEXIST && !is_not_offered(error)) || ::unlink(path.c_str()) != 0 ||
          ::rename(partial.c_str(), path.c_str()) != 0)
        fail(path, "cannot be replaced", error);
    }
  } catch (...) {
    ::unlink(partial.c_str());
    throw;
  }
  sync_directory(path.parent_path());
}

void sync_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot be opened", errno);
  const int error = sync_to_disk(fd) ? 0 : errno;
  ::close(fd);
  if (error != 0) fail(path, "cannot be written to the disk", error);
}

}  // namespace tutti::keep
