#include "tutti/base/file_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/random_bits.h"

namespace tutti {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code failed;
  const bool found = fs::exists(path, failed);
  if (failed)
    throw IoError(
        fmt::format("{}: cannot be looked at: {}", path.string(), file_error(failed.value())));
  return found;
}

bool is_not_offered(int error) noexcept {
  constexpr int kNotSupported = 524;  // the kernel's own ENOTSUPP, which some file systems return
  constexpr std::array kErrors = {EINVAL, ENOSYS, EOPNOTSUPP, EPERM, ENOTTY, kNotSupported};
  return std::ranges::find(kErrors, error) != kErrors.end();
}

bool sync_to_disk(int file) noexcept {
  while (::fsync(file) != 0) {
    if (errno == EINTR) continue;
    return is_not_offered(errno);
  }
  return true;
}

std::string unique_ending() {
  uint64_t random = 0;
  CHECK(fill_random(std::as_writable_bytes(std::span(&random, 1))), "getrandom: {}",
        file_error(errno));
  return fmt::format("{}-{:016x}", ::getpid(), random);
}

NamelessFile make_nameless_file(const std::string& name) noexcept {
  constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL of Linux 6.3, which older headers lack
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int file = ::memfd_create(name.c_str(), kFlags | kNoExecSeal);
  if (file < 0 && errno == EINVAL) file = ::memfd_create(name.c_str(), kFlags);
  if (file >= 0) return {file, true};
  const int error = errno;
  std::error_code none;
  for (const auto& folder : {fs::path("/dev/shm"), fs::temp_directory_path(none)}) {
    if (folder.empty()) continue;  // TMPDIR is not a folder
    std::string path = (folder / (name + "-XXXXXX")).string();
    file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) continue;
    ::unlink(path.c_str());
    return {file, false};
  }
  errno = error;
  return {};
}

}  // namespace tutti
