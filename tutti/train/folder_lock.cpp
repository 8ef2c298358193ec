#include "tutti/train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"

namespace tutti {
namespace {

constexpr const char* kFile = "run.lock";

/// "process 4711 on node07", as the holder wrote it.
std::string holder(int file) {
  std::array<char, 300> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  const std::string_view line(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  const std::string name(line.substr(0, line.find('\n')));
  return name.empty() ? "another process" : name;
}

bool try_lock(int file, const std::string& folder) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    log::warn("'{}' cannot be locked ({}): nothing keeps a second run out of it", folder,
              std::strerror(errno));
    break;
  }
  return true;
}

int open_file(const std::filesystem::path& path) {
  std::error_code failed;  // open() says why
  std::filesystem::create_directories(path.parent_path(), failed);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    throw IoError(fmt::format("{}: cannot be written: {}; choose another --output-dir",
                              path.string(), std::strerror(errno)));
  return file;
}

/// Whether the path leads to another file, or none: a run that began with --fresh may have renamed
/// the folder while this one waited.
bool moved_away(int file, const std::filesystem::path& path) {
  struct stat held {};
  struct stat there {};
  if (::fstat(file, &held) != 0) return false;
  return ::stat(path.c_str(), &there) != 0 || held.st_dev != there.st_dev ||
         held.st_ino != there.st_ino;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, double patience) {
  const std::filesystem::path path = folder / kFile;
  file_ = open_file(path);
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(patience);
  for (bool told = false;;) {
    if (try_lock(file_, folder.string())) {
      if (!moved_away(file_, path)) break;
      ::close(std::exchange(file_, -1));  // which gives the lock back
      file_ = open_file(path);
      continue;
    }
    const std::string who = holder(file_);
    if (Clock::now() >= until) {
      ::close(std::exchange(file_, -1));
      throw ConfigError(
          fmt::format("a run is under way in '{}': {}; wait for its end, stop it, or "
                      "choose another --output-dir",
                      folder.string(), who));
    }
    if (!told)
      log::info("a run is under way in '{}': {}; waiting up to {:.0f} s for its end",
                folder.string(), who, patience);
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string text = fmt::format("process {} on {}\n", ::getpid(), host.data());
  // What it says is for a message only: a disk too full for it is no reason to refuse the run.
  if (::ftruncate(file_, 0) == 0 && ::pwrite(file_, text.data(), text.size(), 0) < 0)
    log::debug("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

}  // namespace tutti
