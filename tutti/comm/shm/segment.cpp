#include "tutti/comm/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::comm {

SharedSegment SharedSegment::create(size_t bytes) {
  SharedSegment segment;
  if (bytes == 0) return segment;
  const auto fail = [bytes](const char* call, int error) {
    throw CommError(
        fmt::format("{} for {} bytes of shared memory failed: {}; is the node's or the job's "
                    "memory limit reached?",
                    call, bytes, std::strerror(error)));
  };
  segment.descriptor_ = memfd_create("tutti", MFD_CLOEXEC);
  if (segment.descriptor_ < 0) fail("memfd_create", errno);
  // Reserves the pages now: a missing page would be a SIGBUS in the middle of training.
  if (const int error = posix_fallocate(segment.descriptor_, 0, static_cast<off_t>(bytes));
      error != 0)
    fail("posix_fallocate", error);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                  segment.descriptor_, 0);
  if (at == MAP_FAILED) fail("mmap", errno);
  segment.data_ = static_cast<std::byte*>(at);
  segment.bytes_ = bytes;
  return segment;
}

std::optional<SharedSegment> SharedSegment::open(pid_t owner, int descriptor, size_t bytes) {
  SharedSegment segment;
  if (bytes == 0) return segment;
  segment.descriptor_ =
      ::open(fmt::format("/proc/{}/fd/{}", owner, descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (segment.descriptor_ < 0) return std::nullopt;
  if (lseek(segment.descriptor_, 0, SEEK_END) != static_cast<off_t>(bytes))
    return std::nullopt;  // not that process's segment after all
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.descriptor_, 0);
  if (at == MAP_FAILED) return std::nullopt;
  segment.data_ = static_cast<std::byte*>(at);
  segment.bytes_ = bytes;
  segment.close_descriptor();
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedSegment::~SharedSegment() {
  close_descriptor();
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedSegment::close_descriptor() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace tutti::comm
