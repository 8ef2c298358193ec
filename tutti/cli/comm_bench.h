#pragma once
// Times one collective of one size beside a memcpy of the same bytes and the MPI library's own call: what `tutti bench comm` prints.

#include <optional>
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti {

struct CommBenchOptions {
  comm::Collective kind = comm::Collective::allreduce;
  comm::Element element = comm::Element::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  std::string algorithm;  ///< empty: chosen
  size_t chunk = 0;       ///< elements
  int iterations = 20;
  int warmup = 5;
  bool check = false;
  bool overlap = false;    ///< measure CommBenchRow::hidden
  bool peers = true;       ///< run memcpy and, among processes, MPI's own collective in turns with ours
  bool processes = false;  ///< MPI is running
};

/// Medians over iterations of the mean over ranks, in seconds. In each iteration owners write their input again, and all ranks meet, before each
/// of the three.
struct CommBenchRow {
  size_t count = 0;  ///< elements of the long vector
  size_t bytes = 0;
  std::string algorithm;
  double seconds = 0;
  double memcpy_seconds = 0;            ///< all ranks at once, each `bytes`; 0: not measured
  std::optional<double> mpi_seconds;
  /// Of a collective that runs while its rank computes as long as it takes alone: the part of its time that disappears, (alone + computation -
  /// both) / alone; 1 is all of it. The computation fits in registers and calls progress() every millisecond, as kernels of a step would.
  std::optional<double> hidden;
  std::optional<size_t> wrong;          ///< elements, over all ranks; empty: not checked
  double algorithm_bandwidth() const { return static_cast<double>(bytes) / seconds; }
};

/// Collective. `bytes` is rounded down to whole elements, and to a multiple of the ranks where the collective deals out parts.
CommBenchRow bench_collective(comm::Communicator& communicator, const CommBenchOptions& options, size_t bytes);

/// Bytes over a link per byte of the vector, at least: algorithm bandwidth times this is the bandwidth a link must have. As nccl-tests.
double bus_factor(comm::Collective kind, int ranks);

}  // namespace tutti
