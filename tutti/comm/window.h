#pragma once
// Window: memory that a rank allocates together with all others, so that ranks of one node can read
// each other's in place.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tutti::comm {

/// What a rank may do with its peers' parts of a window. Between processes a write to memory that
/// is only read ends the process that writes.
enum class PeerAccess : uint8_t { read, write };

/// One rank's handle. Its own part is writable, those of peers as PeerAccess says. The memory is
/// aligned to at least 64 bytes and starts as zeros. Freed by the destructor, which is not
/// collective; a peer that still holds its handle may go on reading.
class Window {
 public:
  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  int rank() const {
    return rank_;
  }  ///< of this handle's owner, in the communicator that allocated it
  int ranks() const { return static_cast<int>(segments_.size()); }
  std::byte* data() const { return segments_[static_cast<size_t>(rank_)].data(); }
  size_t bytes() const { return segments_[static_cast<size_t>(rank_)].size(); }
  /// Whether peer() works: all ranks of the job run on one node and see each other's memory.
  bool shared() const { return shared_; }
  /// The address, in this rank, of another rank's memory; null when not shared or when that rank
  /// asked for 0 bytes.
  std::byte* peer(int rank) const { return segments_[static_cast<size_t>(rank)].data(); }
  size_t peer_bytes(int rank) const { return segments_[static_cast<size_t>(rank)].size(); }
  bool contains(const void* begin, size_t count) const {
    const auto* at = static_cast<const std::byte*>(begin);
    return at >= data() && count <= bytes() &&
           at - data() <= static_cast<std::ptrdiff_t>(bytes() - count);
  }

 protected:
  /// `segments` has one entry per rank; those of others are empty when not shared.
  Window(int rank, bool shared, std::vector<std::span<std::byte>> segments)
      : rank_(rank), shared_(shared), segments_(std::move(segments)) {}

 private:
  int rank_;
  bool shared_;
  std::vector<std::span<std::byte>> segments_;
};

}  // namespace tutti::comm
