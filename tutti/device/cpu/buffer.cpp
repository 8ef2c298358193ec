#include "tutti/device/cpu/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"

namespace tutti::device {
namespace {

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void out_of_memory(size_t bytes) {
  throw DeviceError(fmt::format(
      "cannot allocate {:.1f} MiB of host memory ({}): use a smaller batch or more memory",
      static_cast<double>(bytes) / (1 << 20), std::strerror(ENOMEM)));
}

// An anonymous mapping is zero without being touched, but only page-aligned: so this maps one huge
// page more and gives the surplus on both sides back.
std::byte* map_huge(size_t bytes) {
  const size_t size = round_up(bytes, Buffer::kHugePage);
  void* raw = mmap(nullptr, size + Buffer::kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) out_of_memory(bytes);
  auto* start = static_cast<std::byte*>(raw);
  const size_t skip = (Buffer::kHugePage - reinterpret_cast<uintptr_t>(start) % Buffer::kHugePage) %
                      Buffer::kHugePage;
  if (skip > 0) munmap(start, skip);
  munmap(start + skip + size, Buffer::kHugePage - skip);
  madvise(start + skip, size,
          MADV_HUGEPAGE);  // advice: without huge pages the memory is the same, only slower
  return start + skip;
}

/// Maps a file without a name that has space for all of its bytes.
std::byte* map_file(size_t bytes, const std::filesystem::path& folder) {
  const auto refuse = [&](int error) {
    throw IoError(fmt::format("{}: cannot keep {:.1f} MiB there ({}): name a folder with more room",
                              folder.string(), static_cast<double>(bytes) / (1 << 20),
                              std::strerror(error)));
  };
  std::string name = (folder / "tutti-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) refuse(errno);
  unlink(name.c_str());
  const auto length = static_cast<off_t>(bytes);
  int failed = fallocate(file, 0, 0, length) == 0 ? 0 : errno;
  // If a file system cannot reserve space, pages are allocated on writing, and a full disk ends the
  // program.
  if (is_not_offered(failed)) failed = ftruncate(file, length) == 0 ? 0 : errno;
  void* start = MAP_FAILED;
  if (failed == 0) {
    start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) failed = errno;
  }
  close(file);  // the mapping keeps it open
  if (failed != 0) refuse(failed);
  return static_cast<std::byte*>(start);
}

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kHugePage) {
    data_ = map_huge(bytes);
    mapped_ = round_up(bytes, kHugePage);
    return;
  }
  const size_t size = round_up(bytes, kAlignment);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (data_ == nullptr) out_of_memory(bytes);
  std::memset(data_, 0, size);
}

Buffer::Buffer(size_t bytes, const std::filesystem::path& folder) {
  if (folder.empty()) {
    *this = Buffer(bytes);
    return;
  }
  bytes_ = bytes;
  if (bytes == 0) return;
  data_ = map_file(bytes, folder);
  mapped_ = bytes;
}

Buffer::~Buffer() {
  if (mapped_ > 0)
    munmap(data_, mapped_);
  else
    std::free(data_);
}

}  // namespace tutti::device
