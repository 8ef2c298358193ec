#pragma once
// SharedSegment: anonymous memory that other processes of the node can map. It has no name in any
// file system, so nothing is left behind when a job is killed, and it is not limited by the size of
// /dev/shm.
//
// The owner creates it (memfd_create; where a sandbox refuses that, an unlinked file:
// base/file_calls.h), tells the others its process id, its descriptor and a random number that lies
// behind the memory, and they open /proc/<pid>/fd/<descriptor>. That works between processes of one
// user in one process namespace; where it does not, open() says so. The number tells whether the
// process that was found is the one that was meant: in another namespace, or under another
// namespace's /proc, the same id belongs to somebody else.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tutti/comm/transport/window.h"

namespace tutti::comm {

/// Bytes of this node's memory, or of the job's share of it, that nobody uses now.
int64_t available_memory();

class SharedSegment {
 public:
  /// Empty: no memory.
  SharedSegment() = default;
  /// Zeroed memory. Where it is a memfd it is sealed: nobody who maps it can shorten it, which
  /// would be a SIGBUS in the middle of training, nor execute it as a file, where the kernel knows
  /// that seal. Whoever made it, or has opened it for writing, backs it with pages before anybody
  /// touches it; what another has backed stays as it is. Throws CommError when there is not enough.
  static SharedSegment create(size_t bytes);
  /// Reserves pages for bytes [begin, end), near this thread's processor: a missing page would be a
  /// SIGBUS. Needs the descriptor. Throws CommError when there is not enough memory.
  void back(size_t begin, size_t end);
  /// Asks for large pages where all of it is backed; they cost fewer misses of address translation.
  /// Best effort.
  void enlarge_pages() noexcept;
  /// Another process's segment, of this size and with this nonce(); nothing when this process may
  /// not see it, or finds another one.
  static std::optional<SharedSegment> open(pid_t owner, int descriptor, size_t bytes,
                                           uint64_t nonce, PeerAccess access);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::span<std::byte> memory() const { return {data_, bytes_}; }
  /// -1 once closed. Peers need the owner's open only until they have mapped the memory.
  int descriptor() const { return descriptor_; }
  void close_descriptor() noexcept;
  uint64_t nonce() const { return nonce_; }

 private:
  /// What is mapped: the memory and the number behind it.
  static size_t mapped(size_t bytes);
  uint64_t* place_of_nonce() const;
  void map(bool writes);
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
  uint64_t nonce_ = 0;
};

}  // namespace tutti::comm
