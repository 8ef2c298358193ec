#pragma once
// Times one collective of one size, in turns with its peers, for `tutti bench comm`.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/cli/peers/peer.h"
#include "tutti/comm/communicator.h"

namespace tutti::cli {

/// A peer library that has been opened.
struct OpenPeer {
  std::string name;
  std::unique_ptr<Peer> peer;
};

struct CommBenchOptions {
  comm::Collective kind = comm::Collective::allreduce;
  comm::Element element = comm::Element::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  std::string algorithm;  ///< empty: chosen automatically
  size_t chunk = 0;       ///< elements
  int iterations = 20;
  int warmup = 5;
  int checks = 0;  ///< calls whose results are compared with plain arithmetic, element by element
                   ///< on every rank
  bool shared_output = false;               ///< one output for all ranks, as in CommBuffers
  bool overlap = false;                     ///< measure CommBenchRow::hidden
  std::vector<const OpenPeer*> peers = {};  ///< run in turns with ours
};

/// Medians over iterations of the mean over ranks, in seconds. Before each call, of ours or of a
/// peer, owners write their input again and all ranks meet.
struct CommBenchRow {
  size_t count = 0;  ///< elements of the long vector
  size_t bytes = 0;
  std::string algorithm;
  double seconds = 0;
  double average = 0, least = 0,
         most = 0;  ///< over the ranks' means over iterations, as in OSU's benchmarks
  std::vector<std::optional<double>> peer_seconds;  ///< in the order of options.peers; empty: that
                                                    ///< peer does not support it
  std::optional<double> hidden;  ///< part hidden behind a computation on the same rank
  std::optional<size_t> wrong;   ///< wrong elements, over all ranks; empty: not checked
  double algorithm_bandwidth() const { return static_cast<double>(bytes) / seconds; }
};

/// Times one collective. Collective. `bytes` is rounded down to whole elements, and to a
/// multiple of the ranks where the collective deals out parts. With checks, throws CommError if a
/// peer's answer is wrong: its time would not be comparable.
CommBenchRow bench_collective(comm::Communicator& communicator, const CommBenchOptions& options,
                              size_t bytes);

/// Returns the least number of bytes over a link per byte of the vector: algorithm bandwidth times
/// this is the bandwidth a link must have, as in nccl-tests.
double bus_factor(comm::Collective kind, int ranks);

}  // namespace tutti::cli
