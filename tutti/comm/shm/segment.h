#pragma once
// SharedSegment: anonymous memory that other processes of the node can map. It has no name in any
// file system, so nothing is left behind when a job is killed, and it is not limited by the size of
// /dev/shm.
//
// The owner creates it (memfd_create), tells the others its process id and descriptor, and they
// open /proc/<pid>/fd/<descriptor>. That works between processes of one user in one process
// namespace; where it does not, open() says so.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>

namespace tutti::comm {

class SharedSegment {
 public:
  /// Empty: no memory.
  SharedSegment() = default;
  /// Zeroed memory, already backed by pages (near this thread's processor). Throws CommError when
  /// there is not enough.
  static SharedSegment create(size_t bytes);
  /// Another process's segment; nothing when this process may not see it.
  static std::optional<SharedSegment> open(pid_t owner, int descriptor, size_t bytes);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::span<std::byte> memory() const { return {data_, bytes_}; }
  /// The owner's descriptor, -1 once closed. Peers need it open only until they have mapped the
  /// memory.
  int descriptor() const { return descriptor_; }
  void close_descriptor() noexcept;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace tutti::comm
