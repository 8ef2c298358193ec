#include "tutti/comm/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::comm {

namespace {

uint64_t random_number() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    throw CommError(fmt::format("getrandom failed: {}", std::strerror(errno)));
  return number;
}

}  // namespace

size_t SharedSegment::mapped(size_t bytes) { return (bytes + 7) / 8 * 8 + sizeof(uint64_t); }

uint64_t* SharedSegment::place_of_nonce() const {
  return reinterpret_cast<uint64_t*>(data_ + mapped(bytes_) - sizeof(uint64_t));
}

SharedSegment SharedSegment::create(size_t bytes) {
  SharedSegment segment;
  if (bytes == 0) return segment;
  const auto fail = [bytes](const char* call, int error) {
    throw CommError(
        fmt::format("{} for {} bytes of shared memory failed: {}; is the node's or the job's "
                    "memory limit reached?",
                    call, bytes, std::strerror(error)));
  };
  constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL of Linux 6.3, which older headers lack
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  segment.descriptor_ = memfd_create("tutti", kFlags | kNoExecSeal);
  if (segment.descriptor_ < 0 && errno == EINVAL)
    segment.descriptor_ = memfd_create("tutti", kFlags);
  if (segment.descriptor_ < 0) fail("memfd_create", errno);
  // Reserves the pages now: a missing page would be a SIGBUS in the middle of training.
  if (const int error = posix_fallocate(segment.descriptor_, 0, static_cast<off_t>(mapped(bytes)));
      error != 0)
    fail("posix_fallocate", error);
  if (fcntl(segment.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail("fcntl(F_ADD_SEALS)", errno);
  void* at = mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                  segment.descriptor_, 0);
  if (at == MAP_FAILED) fail("mmap", errno);
  segment.data_ = static_cast<std::byte*>(at);
  segment.bytes_ = bytes;
  segment.nonce_ = *segment.place_of_nonce() = random_number();
  return segment;
}

std::optional<SharedSegment> SharedSegment::open(pid_t owner, int descriptor, size_t bytes,
                                                 uint64_t nonce, PeerAccess access) {
  SharedSegment segment;
  if (bytes == 0) return segment;
  const bool writes = access == PeerAccess::write;
  segment.descriptor_ = ::open(fmt::format("/proc/{}/fd/{}", owner, descriptor).c_str(),
                               (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (segment.descriptor_ < 0) return std::nullopt;
  if (lseek(segment.descriptor_, 0, SEEK_END) != static_cast<off_t>(mapped(bytes)))
    return std::nullopt;  // not that process's segment after all
  void* at = mmap(nullptr, mapped(bytes), writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                  segment.descriptor_, 0);
  if (at == MAP_FAILED) return std::nullopt;
  segment.data_ = static_cast<std::byte*>(at);
  segment.bytes_ = bytes;
  segment.nonce_ = *segment.place_of_nonce();
  if (segment.nonce_ != nonce) return std::nullopt;
  segment.close_descriptor();
  return segment;
}

int64_t available_memory() { return read_topology().available_bytes; }

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)), nonce_(std::exchange(other.nonce_, 0)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(nonce_, other.nonce_);
  return *this;
}

SharedSegment::~SharedSegment() {
  close_descriptor();
  if (data_ != nullptr) munmap(data_, mapped(bytes_));
}

void SharedSegment::close_descriptor() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace tutti::comm
