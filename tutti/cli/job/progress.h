#pragma once
// comm.progress_threads made concrete: how many progress threads this rank has, and on which cores
// (comm/run/progress.h).

#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/topology.h"

namespace tutti {

struct ProgressChoice {
  std::vector<int> processors;  ///< for comm::Progress: one a thread
  std::string line;             ///< for the log: "progress: 1 thread on core 5"
  bool doubtful = false;        ///< worth a warning
};

/// setting: "auto" or a number. auto is one thread when `cores` of this rank outnumber its compute
/// threads, and none otherwise: no compute thread loses its core.
int count_progress_threads(const std::string& setting, int compute_threads, int cores);

/// As above, on the last of `processors`: one of each core that is this rank's own. Threads for
/// which no core is left get none of their own.
ProgressChoice choose_progress(const std::string& setting, int compute_threads,
                               const std::vector<int>& processors);

/// Cores that a rank may count on when `local_ranks` share the node, some of them perhaps the same
/// binding.
int cores_of_rank(const Topology& topology, int local_ranks);

/// Collective. Processors that are this rank's own, one of each core: its part of its binding where
/// other ranks have the same one.
std::vector<int> own_processors(comm::Communicator& communicator, const Topology& topology);

/// Collective. Gives this rank its progress threads; polling instead, with a doubtful choice that
/// says why, where the MPI library does not allow them. Chooses nothing, and says nothing, for a
/// single rank.
ProgressChoice start_progress(comm::Communicator& communicator, const std::string& setting,
                              int compute_threads, const Topology& topology);

/// For flags: what is wrong with a setting; empty if nothing is.
std::string progress_setting_error(const std::string& setting);

}  // namespace tutti
