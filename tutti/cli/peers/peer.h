#pragma once
// Peer: another way to do a collective, to run in turns with ours: `tutti bench comm --peers`.
//
// There is one file for each peer. If its library was not found when the build was configured, its
// file *_absent.cpp is built instead.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti::cli {

/// Not thread-safe. Must be destroyed before the communicator that it was opened with.
class Peer {
 public:
  virtual ~Peer() = default;
  /// Returns a blocking call on all ranks that does `task` (equal parts only) from `input` to
  /// `output`, a broadcast in `output` alone; empty where the library has no such collective, type
  /// or operation, and then on every rank. Buffers are the caller's, hold max(extent, task.count)
  /// elements, and outlive the call.
  virtual std::function<void()> collective(const comm::Task& task, comm::Element element,
                                           comm::ReduceOp op, std::byte* input,
                                           std::byte* output) = 0;
  /// Returns whether the output is then the collective's answer. False for a mere yardstick.
  virtual bool answers() const { return true; }
};

struct PeerKind {
  std::string_view name;    ///< in --peers and, with its own capitals, above its column: "Gloo"
  std::string_view absent;  ///< why this build lacks it; empty: it has it
  bool processes = true;    ///< needs ranks that are processes under MPI
  std::unique_ptr<Peer> (*open)(comm::Communicator& communicator) =
      nullptr;  ///< collective; throws CommError
};

/// Returns all kinds, in the order of their columns.
std::span<const PeerKind* const> peer_kinds();
extern const PeerKind memcpy_peer, mpi_peer, gloo_peer, oneccl_peer;

/// Returns the kinds of "all" (those that this build has and these ranks can use), "none", or names
/// with commas between, in any case of letters: "memcpy,mpi". Throws ConfigError for an unknown
/// name and for one that this build does not have or these ranks cannot use.
std::vector<const PeerKind*> peers_named(std::string_view names, bool processes);

}  // namespace tutti::cli
