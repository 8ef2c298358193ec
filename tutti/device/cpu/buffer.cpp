#include "tutti/device/cpu/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti {
namespace {

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void out_of_memory(size_t bytes) {
  throw DeviceError(fmt::format(
      "cannot allocate {:.1f} MiB of host memory ({}): use a smaller batch or more memory",
      static_cast<double>(bytes) / (1 << 20), std::strerror(ENOMEM)));
}

// An anonymous mapping is zero without being touched; a plain one is only page-aligned, so a huge
// page more is mapped and the surplus on both sides given back.
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

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kHugePage) {
    data_ = map_huge(bytes);
    return;
  }
  const size_t size = round_up(bytes, kAlignment);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (data_ == nullptr) out_of_memory(bytes);
  std::memset(data_, 0, size);
}

Buffer::~Buffer() {
  if (bytes_ >= kHugePage)
    munmap(data_, round_up(bytes_, kHugePage));
  else
    std::free(data_);
}

}  // namespace tutti
