#pragma once
// SharedMemory is memory that the processes of a node share, zero at first.

#include <cstddef>
#include <string>

namespace tutti::data {

/// Each process opens the same name with the same size, and all see the same bytes. Nothing is left
/// behind when they end, provided that remove_name() is called once all have opened it.
class SharedMemory {
 public:
  /// Allocates the memory now, so that a lack of it is an error here and not a signal later.
  /// IoError naming the size if there is too little.
  SharedMemory(const std::string& name, size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  void remove_name() const;

 private:
  std::string name_;
  size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace tutti::data
