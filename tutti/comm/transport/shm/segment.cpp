#include "tutti/comm/transport/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/random_bits.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::comm {

namespace {

constexpr size_t kLargePage = size_t{2} << 20;

[[noreturn]] void fail(const char* call, size_t bytes, int error) {
  const bool memory = error == ENOMEM || error == ENOSPC;
  throw CommError(fmt::format("{} for {} bytes of shared memory failed: {}{}", call, bytes,
                              memory ? std::strerror(error) : file_error(error),
                              memory ? "; is the node's or the job's memory limit reached?" : ""));
}

uint64_t random_number() {
  uint64_t number = 0;
  if (!fill_random(std::as_writable_bytes(std::span(&number, 1))))
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
  const NamelessFile file = make_nameless_file("tutti");
  segment.descriptor_ = file.descriptor;
  if (segment.descriptor_ < 0) fail("memfd_create", bytes, errno);
  if (mapped(bytes) > static_cast<size_t>(std::numeric_limits<off_t>::max()) ||
      ftruncate(segment.descriptor_, static_cast<off_t>(mapped(bytes))) != 0)
    fail("ftruncate", bytes, errno);
  if (file.sealable &&
      fcntl(segment.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail("fcntl(F_ADD_SEALS)", bytes, errno);
  segment.bytes_ = bytes;
  segment.back(bytes, bytes);  // the page of the nonce
  segment.map(true);
  if (segment.data_ == nullptr) fail("mmap", bytes, errno);
  segment.nonce_ = *segment.place_of_nonce() = random_number();
  return segment;
}

// Backs a large page at a time: older kernels end the call when a signal comes, and take back the
// pages reserved so far, so that beside a fast timer a whole segment might never be backed.
void SharedSegment::back(size_t begin, size_t end) {
  if (bytes_ == 0) return;
  const size_t last = end == bytes_ ? mapped(bytes_) : end;  // including the nonce
  for (size_t at = begin; at < last;) {
    const size_t next = std::min(last, (at / kLargePage + 1) * kLargePage);
    const int error =
        posix_fallocate(descriptor_, static_cast<off_t>(at), static_cast<off_t>(next - at));
    if (error == 0)
      at = next;
    else if (is_not_offered(error))
      return;  // each page is allocated at its first touch
    else if (error != EINTR)
      fail("posix_fallocate", end - begin, error);
  }
}

// Maps where large pages are possible: a file's large pages begin at multiples of their size.
void SharedSegment::map(bool writes) {
  const size_t length = mapped(bytes_);
  const int access = writes ? PROT_READ | PROT_WRITE : PROT_READ;
  void* at = nullptr;
  if (length < kLargePage) {
    at = mmap(nullptr, length, access, MAP_SHARED, descriptor_, 0);
  } else {
    const size_t room = length + kLargePage;
    void* const reserved =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return;
    auto* const first = static_cast<std::byte*>(reserved);
    const size_t before =
        (kLargePage - reinterpret_cast<uintptr_t>(first) % kLargePage) % kLargePage;
    at = mmap(first + before, length, access, MAP_SHARED | MAP_FIXED, descriptor_, 0);
    const int error = errno;
    if (at == MAP_FAILED) {
      munmap(reserved, room);
    } else {
      const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
      const size_t end = (before + length + page - 1) / page * page;
      if (before > 0) munmap(first, before);
      if (end < room) munmap(first + end, room - end);
    }
    errno = error;
  }
  if (at != MAP_FAILED) data_ = static_cast<std::byte*>(at);
}

void SharedSegment::enlarge_pages() noexcept {
  if (mapped(bytes_) < kLargePage) return;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack
  madvise(data_, mapped(bytes_), MADV_HUGEPAGE);
  madvise(data_, mapped(bytes_), kCollapse);
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
    return std::nullopt;  // another process's segment
  segment.bytes_ = bytes;
  segment.map(writes);
  if (segment.data_ == nullptr) return std::nullopt;
  segment.nonce_ = *segment.place_of_nonce();
  if (segment.nonce_ != nonce) return std::nullopt;
  return segment;
}

int64_t available_memory() { return device::read_topology().available_bytes; }

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
