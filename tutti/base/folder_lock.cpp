#include "tutti/base/folder_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/process_state.h"

namespace tutti {
namespace {

/// The process that last wrote its name into the lock's file.
struct Holder {
  long process = 0;
  std::string host{};

  std::string process_name() const { return fmt::format("process {} on {}", process, host); }
  std::string name() const {
    if (process <= 0) return "another process";
    return has_ended() ? fmt::format("another process; the last one to name itself, {}, has ended",
                                     process_name())
                       : process_name();
  }
  /// Returns true only if that is certain.
  bool has_ended() const {
    return process > 0 && host == host_name() && kill(static_cast<pid_t>(process), 0) != 0 &&
           errno == ESRCH;
  }
};

Holder read_holder(int file) {
  std::array<char, 400> text{};
  std::array<char, 256> host{};
  Holder holder;
  if (pread(file, text.data(), text.size() - 1, 0) > 0 &&
      std::sscanf(text.data(), "process %ld on %255s", &holder.process, host.data()) == 2)
    holder.host = host.data();
  else
    holder.process = 0;
  return holder;
}

void write_holder(int file, const std::filesystem::path& path) {
  const std::string text = fmt::format("process {} on {}\n", getpid(), host_name());
  // The text is only for a message: a disk too full for it is no reason to refuse the work.
  if (ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) < 0)
    log::debug("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

bool try_lock(int file, const std::string& folder) {
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    log::warn("'{}' cannot be locked ({}): nothing keeps a second process out of it", folder,
              std::strerror(errno));
    break;
  }
  return true;
}

/// Any process that may read a file may lock it, and so keep its owner out: the group and others
/// may read it only if the umask lets them write in this folder, too.
void close_to_strangers(int file) {
  struct stat status {};
  if (fstat(file, &status) != 0 || status.st_uid != geteuid()) return;
  const mode_t mode = status.st_mode & 07777;
  const mode_t wanted = (mode & ~mode_t{0044}) | (mode & 0022) << 1;
  if (wanted != mode && fchmod(file, wanted) != 0)
    log::debug("the mode of a lock cannot be changed: {}", std::strerror(errno));
}

int open_lock_file(const std::filesystem::path& path, const FolderLockTerms& terms) {
  std::error_code failed;  // open() says why
  std::filesystem::create_directories(path.parent_path(), failed);
  // A link could lead to a file of another user's choice, whose content the holder's name would
  // replace. The file's owner does not matter: in a group's folder it belongs to whoever came
  // first, its content gives no access, and refusing it would keep this process out as surely as a
  // holder does.
  const int file =
      open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | (terms.inherited ? 0 : O_CLOEXEC), 0622);
  if (file < 0)
    throw IoError(fmt::format(
        "{}: cannot be written: {}; {}", path.string(),
        errno == ELOOP ? "it is a symbolic link, which is not followed" : file_error(errno),
        terms.other_way));
  close_to_strangers(file);
  return file;
}

/// Whether the path leads to another file or to none, because the folder may have been renamed
/// while this process waited.
bool moved_away(int file, const std::filesystem::path& path) {
  struct stat held {};
  struct stat there {};
  if (fstat(file, &held) != 0) return false;
  return stat(path.c_str(), &there) != 0 || held.st_dev != there.st_dev ||
         held.st_ino != there.st_ino;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, const FolderLockTerms& terms) {
  const std::filesystem::path path = folder / terms.file;
  file_ = open_lock_file(path, terms);
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(terms.patience);
  for (bool reported = false;;) {
    if (try_lock(file_, folder.string())) {
      if (!moved_away(file_, path)) break;
      close(std::exchange(file_, -1));  // this releases the lock
      file_ = open_lock_file(path, terms);
      continue;
    }
    const Holder holder = read_holder(file_);
    const bool left_over = terms.inherited && holder.has_ended();
    const std::string what =
        left_over ? fmt::format("{} in '{}' has ended ({}), but not all that it had started",
                                terms.holder, folder.string(), holder.process_name())
                  : fmt::format("{} is under way in '{}': {}", terms.holder, folder.string(),
                                holder.name());
    if (Clock::now() >= until || (terms.inherited && !left_over)) {
      close(std::exchange(file_, -1));
      throw ConfigError(fmt::format("{}; wait for its end, stop it, or {}", what, terms.other_way));
    }
    if (!reported) log::info("{}; waiting up to {:.0f} s for its end", what, terms.patience);
    reported = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  write_holder(file_, path);
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace tutti
