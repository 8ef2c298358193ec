#pragma once
// SharedSegment: anonymous memory that other processes of the node can map. It has no name in any
// file system, so nothing is left behind when a job is killed, and it is not limited by the size of
// /dev/shm.
//
// The owner creates it (memfd_create; where a sandbox refuses that, an unlinked file:
// base/file_calls.h) and sends the others its process id, its descriptor and a random number that
// lies behind the memory; they open /proc/<pid>/fd/<descriptor>. That works between processes of
// one user in one process namespace; elsewhere open() returns nothing. The number shows whether the
// process found is the right one: in another namespace, or under another namespace's /proc, the
// same id belongs to another process.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tutti/comm/transport/window.h"

namespace tutti::comm {

/// Returns the bytes of this node's memory, or of the job's share of it, that are free now.
int64_t available_memory();

class SharedSegment {
 public:
  /// Makes an empty segment, without memory.
  SharedSegment() = default;
  /// Creates zeroed memory. A memfd is sealed: no process that maps it can shorten it, which would
  /// cause a SIGBUS in the middle of training, nor execute it as a file, where the kernel knows
  /// that seal. The creator, or a process that has opened it for writing, backs it with pages
  /// before anyone touches it; pages that another has backed stay as they are. Throws CommError
  /// when there is not enough memory.
  static SharedSegment create(size_t bytes);
  /// Reserves pages for bytes [begin, end), near this thread's processor: a missing page would
  /// cause a SIGBUS. Needs the descriptor. Throws CommError when there is not enough memory.
  void back(size_t begin, size_t end);
  /// Asks for large pages, once all memory is backed; they cost fewer misses of address
  /// translation. Best effort.
  void enlarge_pages() noexcept;
  /// Opens another process's segment, of this size and with this nonce(); returns nothing when this
  /// process may not see it, or finds another one.
  static std::optional<SharedSegment> open(pid_t owner, int descriptor, size_t bytes,
                                           uint64_t nonce, PeerAccess access);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::span<std::byte> memory() const { return {data_, bytes_}; }
  /// Returns -1 once closed. Peers need the owner's descriptor only to map the memory.
  int descriptor() const { return descriptor_; }
  void close_descriptor() noexcept;
  uint64_t nonce() const { return nonce_; }

 private:
  /// Returns the bytes to map: the memory and the number behind it.
  static size_t mapped(size_t bytes);
  uint64_t* place_of_nonce() const;
  void map(bool writes);
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int descriptor_ = -1;
  uint64_t nonce_ = 0;
};

}  // namespace tutti::comm
