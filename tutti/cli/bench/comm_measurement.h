#pragma once
// Runs what `tutti bench comm` measures: rows of collectives, latency, or all algorithms for the
// table of selection. It can print the schedules instead.

#include <string>
#include <vector>

#include "tutti/cli/bench/comm_flags.h"
#include "tutti/comm/communicator.h"

namespace tutti::cli {

/// The values of the flags.
struct CommMeasurement {
  std::string collective, algorithm, element = "f32", op = "sum", transport = "auto",
                                     nodes = "auto", wire = "auto", progress = "0", output, shape,
                                     peers = "all", columns = "nccl", selection, table;
  SizeRange range;
  size_t chunk = 0;
  int ranks = 0, iterations = 20, warmup = 5, checks = 1;
  bool print = false, latency = false, tune = false, overlap = false, shared_output = false,
       check_messages = false, json = false;
  std::string moved_by = {};  // how operations make progress, once ranks run

  std::vector<comm::Collective> kinds() const {
    return collectives_named(!collective.empty() ? collective : tune ? "all" : "allreduce");
  }
  std::vector<size_t> sizes() const { return sizes_in(range); }
};

/// Measures one rank's part of what was asked for; rank 0 prints it. `processes`: ranks are
/// processes, so that peers may join. Returns the number of wrong elements. Collective.
size_t measure_comm(comm::Communicator& communicator, const CommMeasurement& measurement,
                    bool processes);

/// Measures point-to-point latency, as osu_latency does. Returns half of the mean round trip
/// between ranks 0 and 1 in seconds, over `iterations` after `warmup`, as rank 0 measures it, on
/// every rank. The message lies in a window; it is copied out, also where ranks share memory,
/// because a receiver may write to it. Collective; needs at least two ranks, of which the others
/// wait.
double bench_latency(comm::Communicator& communicator, size_t bytes, int warmup, int iterations);

/// Prints every rank's schedule of the first collective for the largest size, and runs nothing.
void print_schedules(const CommMeasurement& measurement);

}  // namespace tutti::cli
