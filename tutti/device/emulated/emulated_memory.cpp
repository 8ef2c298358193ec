#include "tutti/device/emulated/emulated_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>

#include "tutti/base/error.h"
#include "tutti/device/emulated/sanitizers.h"

namespace tutti::device {
namespace {

constexpr size_t kAlignment = 256;         // and the least gap
constexpr size_t kPage = size_t{2} << 20;  // a huge one

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Returns the bytes between the beginnings of a piece and the next.
size_t with_gap(size_t bytes) { return rounded_up(bytes, kAlignment) + kAlignment; }

// The ranges of all devices, for a signal's handler.
struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};
};
std::array<Range, 64> ranges;

void show_range(const std::byte* begin, size_t bytes) {
  for (Range& range : ranges)
    if (uintptr_t none = 0;
        range.begin.compare_exchange_strong(none, reinterpret_cast<uintptr_t>(begin))) {
      range.end = reinterpret_cast<uintptr_t>(begin) + bytes;
      return;
    }
}

void hide_range(const std::byte* begin) {
  for (Range& range : ranges)
    if (range.begin == reinterpret_cast<uintptr_t>(begin)) {
      range.end = 0;
      range.begin = 0;
    }
}

void free_pinned(std::byte* data) { ::operator delete (data, std::align_val_t{kAlignment}); }

// The instruction that faulted runs again afterwards, and ends the process.
void on_fault(int signal, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Range& range : ranges)
    if (at >= range.begin && at < range.end) {
      constexpr char kText[] = "host code touches memory of the emulated device\n";
      [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
      break;
    }
  ::signal(signal, SIG_DFL);
}

}  // namespace

EmulatedMemory::EmulatedMemory(size_t bytes)
    : bytes_(bytes), range_bytes_(rounded_up(2 * bytes + (size_t{64} << 20), kPage)) {
  void* const mapping = mmap(nullptr, range_bytes_ + kPage, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    throw DeviceError(fmt::format("emulated device: the system refuses {} bytes of addresses: {}",
                                  range_bytes_, std::strerror(errno)));
  mapping_ = static_cast<std::byte*>(mapping);
  begin_ = mapping_ + (kPage - reinterpret_cast<uintptr_t>(mapping) % kPage);
  madvise(begin_, range_bytes_, MADV_HUGEPAGE);  // without them it is slower to open and close
  show_range(begin_, range_bytes_);
}

EmulatedMemory::~EmulatedMemory() {
  hide_range(begin_);
  allow_access(begin_, touched_);
  munmap(mapping_, range_bytes_ + kPage);
  for (const auto& [data, bytes] : pinned_) free_pinned(data);
}

std::byte* EmulatedMemory::allocate(size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::pinned) return allocate_pinned(bytes);
  if (bytes > free_bytes())
    throw DeviceError(
        fmt::format("emulated device: no memory for {} bytes: {} of {} bytes are "
                    "free; a smaller batch needs less",
                    bytes, free_bytes(), bytes_));
  std::byte* data = begin_;  // the first place after which nothing is for long enough
  for (const auto& [begin, used] : pieces_) {
    if (data + with_gap(bytes) <= begin) break;
    data = begin + with_gap(used);
  }
  if (data + with_gap(bytes) > begin_ + range_bytes_)
    throw DeviceError(
        fmt::format("emulated device: no memory for {} bytes in one piece, although "
                    "{} of {} bytes are free",
                    bytes, free_bytes(), bytes_));
  const auto offset = static_cast<size_t>(data - begin_);
  const size_t first_page = offset / kPage * kPage;
  const size_t end = rounded_up(offset + with_gap(bytes), kPage);
  protect(first_page, end, PROT_READ | PROT_WRITE);
  allow_access(data, bytes);
  std::memset(data, 0xFF, bytes);
  forbid_access(data + bytes, with_gap(bytes) - bytes);
  protect(first_page, end, PROT_NONE);
  touched_ = std::max(touched_, end);
  pieces_.emplace(data, bytes);
  in_use_ += bytes;
  most_in_use_ = std::max(most_in_use_, in_use_);
  return data;
}

std::byte* EmulatedMemory::allocate_pinned(size_t bytes) {
  void* const memory = ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (!memory)
    throw DeviceError(fmt::format("emulated device: no memory for {} pinned bytes", bytes));
  std::memset(memory, 0xFF, bytes);
  pinned_.emplace(static_cast<std::byte*>(memory), bytes);
  return static_cast<std::byte*>(memory);
}

void EmulatedMemory::release(std::byte* data, MemoryKind kind) noexcept {
  Pieces& pieces = kind == MemoryKind::pinned ? pinned_ : pieces_;
  const auto piece = pieces.find(data);
  if (piece == pieces.end()) return;
  if (kind == MemoryKind::pinned) {
    free_pinned(data);
  } else {
    forbid_access(data, with_gap(piece->second));
    in_use_ -= piece->second;
  }
  pieces.erase(piece);
}

void EmulatedMemory::protect(size_t begin, size_t end, int access) {
  if (mprotect(begin_ + begin, end - begin, access) != 0)
    throw DeviceError(fmt::format("emulated device: the system refuses access to {} bytes: {}",
                                  end - begin, std::strerror(errno)));
}

void EmulatedMemory::open() {
  if (open_ || touched_ == 0) return;
  protect(0, touched_, PROT_READ | PROT_WRITE);
  open_ = true;
}

void EmulatedMemory::close() noexcept {
  if (open_) mprotect(begin_, touched_, PROT_NONE);
  open_ = false;
}

bool EmulatedMemory::holds(const void* at, size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(at);
  for (const Pieces* pieces : {&pieces_, &pinned_}) {
    const auto next = pieces->upper_bound(first);
    if (next == pieces->begin()) continue;
    const auto& [begin, size] = *std::prev(next);
    if (first < begin + size && bytes <= static_cast<size_t>(begin + size - first)) return true;
  }
  return false;
}

void name_faults() {
  struct sigaction before {};
  if (sigaction(SIGSEGV, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace tutti::device
