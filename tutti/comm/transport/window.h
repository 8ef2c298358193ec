#pragma once
// Window: memory that a rank allocates together with all others, so that ranks of one node can read
// each other's memory in place.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tutti/comm/transport/neighbours.h"

namespace tutti::comm {

/// A rank's access to its peers' parts of a window. Between processes, a process that writes to
/// read-only memory is ended by the write.
enum class PeerAccess : uint8_t { read, write };

/// One rank's handle. Its own part is writable, its neighbours' parts as PeerAccess says. The
/// memory is aligned to at least 64 bytes and starts as zeros. The destructor frees it and is not
/// collective; a peer that still holds its handle may go on reading.
class Window {
 public:
  virtual ~Window() = default;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::byte* data() const { return segments_[mine_].data(); }
  size_t bytes() const { return segments_[mine_].size(); }
  /// Returns the address, in this rank, of another rank's memory; null when that rank is no
  /// neighbour, or asked for 0 bytes.
  std::byte* peer(int rank) const {
    const int index = neighbours_->index(rank);
    return index < 0 ? nullptr : part(index).data();
  }
  /// Returns the memory of neighbour `index`, as this rank sees it.
  std::span<std::byte> part(int index) const { return segments_[static_cast<size_t>(index)]; }
  const Neighbours& neighbours() const { return *neighbours_; }
  bool contains(const void* begin, size_t count) const {
    const auto* at = static_cast<const std::byte*>(begin);
    return at >= data() && count <= bytes() &&
           at - data() <= static_cast<std::ptrdiff_t>(bytes() - count);
  }
  int index() const { return static_cast<int>(mine_); }  ///< this rank's index

 protected:
  /// `segments`: one for each neighbour.
  Window(int rank, std::shared_ptr<const Neighbours> neighbours,
         std::vector<std::span<std::byte>> segments)
      : neighbours_(std::move(neighbours)), mine_(static_cast<size_t>(neighbours_->index(rank))),
        segments_(std::move(segments)) {}

 private:
  std::shared_ptr<const Neighbours> neighbours_;
  size_t mine_;
  std::vector<std::span<std::byte>> segments_;
};

}  // namespace tutti::comm
