#pragma once
// Turns comm.progress_threads into concrete numbers: how many progress threads this rank has, and
// on which cores (comm/run/progress.h).

#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::cli {

struct ProgressChoice {
  std::vector<int> processors;  ///< for comm::Progress: one a thread
  std::string line;             ///< for the log: "progress: 1 thread on core 5"
  bool doubtful = false;        ///< worth a warning
};

/// Returns the number of threads for a setting of "auto" or a number. auto is one thread when
/// `cores` of this rank outnumber its compute threads, and none otherwise: no compute thread loses
/// its core.
int count_progress_threads(const std::string& setting, int compute_threads, int cores);

/// Chooses as above, on the last of `processors`: one of each core that is this rank's own. Threads
/// without a free core are not bound.
ProgressChoice choose_progress(const std::string& setting, int compute_threads,
                               const std::vector<int>& processors);

/// Returns the cores that a rank may count on when `local_ranks` share the node, some of them
/// perhaps the same binding.
int cores_of_rank(const device::Topology& topology, int local_ranks);

/// Returns processors that are this rank's own, one of each core: its part of its binding if other
/// ranks have the same one. Collective.
std::vector<int> own_processors(comm::Communicator& communicator, const device::Topology& topology);

/// Gives this rank its progress threads. If the MPI library does not allow them, it polls instead,
/// and the choice is doubtful and gives the reason. Does nothing for a single rank. Collective.
ProgressChoice start_progress(comm::Communicator& communicator, const std::string& setting,
                              int compute_threads, const device::Topology& topology);

/// Returns what is wrong with a setting, for flags; empty if nothing is.
std::string progress_setting_error(const std::string& setting);

}  // namespace tutti::cli
