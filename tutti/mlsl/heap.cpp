#include "tutti/mlsl/heap.h"

#include <algorithm>
#include <cstdlib>

#include "tutti/base/log.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {
namespace {
constexpr size_t kLine = 64;  // pieces share no cache line
size_t rounded(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }
}  // namespace

Heap::Heap(std::unique_ptr<comm::Window> window) : window_(std::move(window)) {
  if (window_->bytes() > 0) free_[0] = window_->bytes();
}

void* Heap::allocate(size_t bytes, size_t alignment) {
  demand(alignment != 0 && (alignment & (alignment - 1)) == 0,
         "Alloc: the alignment {} is not a power of two", alignment);
  alignment = std::max(alignment, kLine);
  bytes = rounded(std::max<size_t>(bytes, 1), kLine);
  const auto base = reinterpret_cast<uintptr_t>(window_->data());
  for (const auto& entry : free_) {
    const auto [begin, room] = entry;
    const size_t skipped = rounded(base + begin, alignment) - (base + begin);
    if (room < bytes || room - bytes < skipped) continue;
    // Skipped bytes stay part of the piece, which saves an entry.
    const Piece piece{begin, skipped + bytes};
    free_.erase(begin);
    if (room > piece.bytes) free_[begin + piece.bytes] = room - piece.bytes;
    void* const memory = window_->data() + begin + skipped;
    used_[memory] = piece;
    return memory;
  }
  log::debug(
      "Alloc: {} bytes of private memory, because the heap is full; MLSL_HEAP_SIZE_GB sets its "
      "size",
      bytes);
  auto* const memory =
      static_cast<std::byte*>(std::aligned_alloc(alignment, rounded(bytes, alignment)));
  if (memory == nullptr) throw CommError(fmt::format("Alloc: no memory for {} bytes", bytes));
  private_.emplace(memory, std::unique_ptr<std::byte, void (*)(std::byte*)>(
                               memory, [](std::byte* m) { std::free(m); }));
  return memory;
}

void Heap::free(void* memory) {
  if (memory == nullptr || private_.erase(memory) > 0) return;
  const auto at = used_.find(memory);
  demand(at != used_.end(), "Free: this memory is not from Alloc, or has been freed before");
  give_back(at->second);
  used_.erase(at);
}

void Heap::give_back(Piece piece) {
  auto next = free_.lower_bound(piece.begin);
  if (next != free_.end() && piece.begin + piece.bytes == next->first) {
    piece.bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == piece.begin) {
      previous->second += piece.bytes;
      return;
    }
  }
  free_[piece.begin] = piece.bytes;
}

}  // namespace tutti::mlsl
