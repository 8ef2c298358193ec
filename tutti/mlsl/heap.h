#pragma once
// Heap: the memory of Environment::Alloc. Pieces of one window, first fit; ordinary memory if the
// window has no piece of the size.

#include <map>
#include <memory>

#include "tutti/comm/transport/window.h"

namespace tutti::mlsl {

/// Not thread-safe. Pieces that have not been freed end with the heap.
class Heap {
 public:
  explicit Heap(std::unique_ptr<comm::Window> window);

  /// Returns uninitialised memory. `alignment` must be a power of two, else ConfigError. Throws
  /// CommError if there is no memory.
  void* allocate(size_t bytes, size_t alignment);
  /// Frees memory; null: does nothing. Throws ConfigError for memory that allocate() has not
  /// returned.
  void free(void* memory);
  /// Whether other ranks of this node can read the memory.
  bool visible(const void* memory) const { return window_->contains(memory, 1); }

 private:
  struct Piece {
    size_t begin = 0;
    size_t bytes = 0;
  };
  void give_back(Piece piece);

  std::unique_ptr<comm::Window> window_;
  std::map<size_t, size_t> free_;  // begin -> bytes; adjacent pieces are merged
  std::map<void*, Piece> used_;
  std::map<void*, std::unique_ptr<std::byte, void (*)(std::byte*)>> private_;
};

}  // namespace tutti::mlsl
