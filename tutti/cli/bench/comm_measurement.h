#pragma once
// What `tutti bench comm` measures: rows of collectives, latency, or all algorithms for the table
// of selection; and the schedules that it prints instead.

#include <string>
#include <vector>

#include "tutti/cli/bench/comm_flags.h"
#include "tutti/comm/communicator.h"

namespace tutti {

/// As the flags say.
struct CommMeasurement {
  std::string collective, algorithm, element = "f32", op = "sum", transport = "auto",
                                     nodes = "auto", wire = "auto", progress = "0", output, shape,
                                     peers = "all", columns = "nccl", selection, table;
  SizeRange range;
  size_t chunk = 0;
  int ranks = 0, iterations = 20, warmup = 5, checks = 1;
  bool print = false, latency = false, tune = false, overlap = false, shared_output = false,
       check_messages = false, json = false;
  std::string moved_by = {};  // how operations are moved forward, once ranks run

  std::vector<comm::Collective> kinds() const {
    return collectives_named(!collective.empty() ? collective : tune ? "all" : "allreduce");
  }
  std::vector<size_t> sizes() const { return sizes_in(range); }
};

/// Collective: one rank's part of what was asked for, printed by rank 0. `processes`: ranks are
/// processes, so that peers may join. Returns the number of wrong elements.
size_t measure_comm(comm::Communicator& communicator, const CommMeasurement& measurement,
                    bool processes);

/// Prints every rank's schedule of the first collective for the largest size, and runs nothing.
void print_schedules(const CommMeasurement& measurement);

}  // namespace tutti
