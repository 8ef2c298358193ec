#pragma once
// Buffer: host memory for tensors, 64-byte aligned (one AVX-512 register, one cache line); large
// buffers use huge pages.

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace tutti::device {

/// Owns `bytes` of zeroed host memory; move-only. The thread that writes a page first decides its
/// NUMA node, so let the thread that will use a part write it first. Not thread-safe itself.
class Buffer {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kHugePage = size_t{2} << 20;

  Buffer() = default;
  /// Allocates zeroed memory of at least `bytes`; throws DeviceError if the system has none. From
  /// one huge page on, the memory is aligned to huge pages and advised to use them.
  explicit Buffer(size_t bytes);
  /// Does the same in a file of `folder` that has no name and ends with the buffer: the system
  /// writes pages there when memory is short, and reads them again when they are touched. Throws
  /// IoError if the folder has no space for all of it. An empty folder: memory as above.
  Buffer(size_t bytes, const std::filesystem::path& folder);
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// Returns the memory as elements of T.
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;  // length of the mapping; 0: allocated memory
};

}  // namespace tutti::device
