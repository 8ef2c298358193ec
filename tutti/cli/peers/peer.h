#pragma once
// Peer: another way to do a collective, to run in turns with ours: `tutti bench comm --peers`.
//
// One file a peer. A peer whose library was not found when the build was configured is its file
// *_absent.cpp instead.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti {

/// Not thread-safe. Destroyed before the communicator that it was opened with.
class Peer {
 public:
  virtual ~Peer() = default;
  /// A blocking call on all ranks that does `task` (equal parts only) from `input` to `output`, a
  /// broadcast in `output` alone; empty where the library has no such collective, type or
  /// operation, and then on every rank. Buffers are the caller's, hold max(extent, task.count)
  /// elements, and outlive the call.
  virtual std::function<void()> collective(const comm::Task& task, comm::Element element,
                                           comm::ReduceOp op, std::byte* input,
                                           std::byte* output) = 0;
  /// Whether the output is then the collective's answer. False for what is only a yardstick.
  virtual bool answers() const { return true; }
};

struct PeerKind {
  std::string_view name;    ///< in --peers and, with its own capitals, above its column: "Gloo"
  std::string_view absent;  ///< why this build does not have it; empty: it has
  bool processes = true;    ///< needs ranks that are processes under MPI
  std::unique_ptr<Peer> (*open)(comm::Communicator& communicator) =
      nullptr;  ///< collective; throws CommError
};

/// All, in the order of their columns.
std::span<const PeerKind* const> peer_kinds();
extern const PeerKind memcpy_peer, mpi_peer, gloo_peer, oneccl_peer;

/// Those of "all" (what this build has and these ranks can), "none", or names with commas between,
/// in any case of letters: "memcpy,mpi". Throws ConfigError for an unknown name and for one that
/// this build does not have or these ranks cannot.
std::vector<const PeerKind*> peers_named(std::string_view names, bool processes);

}  // namespace tutti
