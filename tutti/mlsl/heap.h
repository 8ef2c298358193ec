#pragma once
// Heap: what Environment::Alloc hands out. Pieces of one window, first fit; ordinary memory where
// they do not suffice.

#include <map>
#include <memory>

#include "tutti/comm/transport/window.h"

namespace tutti::mlsl {

/// Not thread-safe. What has not been given back goes with the heap.
class Heap {
 public:
  explicit Heap(std::unique_ptr<comm::Window> window);

  /// `alignment`: a power of two, else ConfigError. Not initialised. Throws CommError where there
  /// is no memory.
  void* allocate(size_t bytes, size_t alignment);
  /// Null: nothing. Throws ConfigError for what allocate() has not given.
  void free(void* memory);
  /// Whether peers of this node can see it.
  bool visible(const void* memory) const { return window_->contains(memory, 1); }

 private:
  struct Piece {
    size_t begin = 0;
    size_t bytes = 0;
  };
  void give_back(Piece piece);

  std::unique_ptr<comm::Window> window_;
  std::map<size_t, size_t> free_;  // begin -> bytes, never neighbours
  std::map<void*, Piece> used_;
  std::map<void*, std::unique_ptr<std::byte, void (*)(std::byte*)>> private_;
};

}  // namespace tutti::mlsl
