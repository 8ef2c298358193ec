#pragma once
// --ranks N outside a launcher: this program starts itself again under mpirun, on this node. It
// also chooses the default number of compute threads of a rank.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/cli/job/supervise.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::cli {

/// The inputs of the launch besides the machine; read_surroundings() gathers them once, tests set
/// them directly.
struct Surroundings {
  std::string mpirun;       ///< path of MPI's launcher; empty: none was found
  std::string mpi_library;  ///< the MPI library's own name: decides which flags the launcher knows
  bool root = false;
  bool user_binds = false;       ///< the user chose a binding by a variable of the MPI library
  std::string home = {};         ///< set where HOME is unset, without which Open MPI 5 does not
                                 ///< start
  int omp_num_threads = 0;       ///< OMP_NUM_THREADS, 0 when unset
  bool omp_wait_policy = false;  ///< OMP_WAIT_POLICY is set
  /// HWLOC_COMPONENTS is set; else mpirun need not ask X servers (comm/transport/mpi/session.cpp)
  bool hwloc_components = false;
  /// The loopback's name where no other network interface is up and the user has chosen none for
  /// Open MPI. By default Open MPI leaves the loopback out, and ranks then cannot reach each other
  /// where /dev/shm has less than 4 MiB for each.
  std::string only_loopback = {};
  bool may_bind = true;  ///< the system lets processes bind themselves to cores
};
Surroundings read_surroundings();

/// A command to run and the reason for its form.
struct Launch {
  std::vector<std::string> command;  ///< mpirun, its flags, then the command of a rank
  std::vector<std::pair<std::string, std::string>> environment;  ///< set in addition
  int threads = 1;                                               ///< per rank
  bool oversubscribed = false;  ///< ranks x threads exceed the cores
  int ranks = 1;
  std::string line;  ///< one line for the log
};

/// Returns the cores of this node that ranks started from this process may use: the cores of its
/// binding, and no more than the quota of its control groups.
int cores_for_ranks(const device::Topology& topology);

/// Returns the compute threads of a rank: `requested`, else OMP_NUM_THREADS, else the cores divided
/// by the ranks of this node, and never more than the cores the launcher bound this rank to, or
/// than OpenMP's variables leave to a team; at least 1. An OMP_NUM_THREADS of more than
/// kMostRanksPerCore threads a core counts as that many, with a warning.
int choose_threads(int requested, int omp_num_threads, const device::Topology& topology,
                   int local_ranks);

/// Names the OpenMP variables that leave compute threads fewer cores than the process may use, and
/// a remedy; empty: there are none.
std::string team_warning(const device::Topology& topology);

/// The requested threads of a rank.
struct RankThreads {
  int threads = 0;             ///< compute threads; 0: choose_threads decides
  std::string progress = "0";  ///< as comm.progress_threads: they get cores of the rank's binding
                               ///< where there are enough
  bool oversubscribe = false;  ///< allows more than kMostRanksPerCore
};

/// Ranks or threads that share a core beyond this number only wait for each other, and a typing
/// error in --ranks or --threads would make the machine unusable: such numbers need
/// --oversubscribe.
constexpr int kMostRanksPerCore = 8;

/// Throws ConfigError for too many ranks a core, unless `oversubscribe` allows them.
void check_ranks_per_core(int ranks, bool oversubscribe, const device::Topology& topology);

/// Checks run.threads of one rank in the same way, where 0 leaves the number to tutti.
void check_threads_per_core(int threads, bool oversubscribe, const device::Topology& topology);

/// Plans how to start `ranks` processes of `command` on this node: with Open MPI 4 or 5, or with
/// MPICH and its relatives. Throws ConfigError when no launcher was found, and for too many ranks a
/// core.
Launch plan_launch(int ranks, const RankThreads& requested, const std::vector<std::string>& command,
                   const device::Topology& topology, const Surroundings& surroundings);

/// Runs the launch, and returns the exit code as supervise() does. If this process dies, the ranks
/// are ended too. Throws DeviceError when the command cannot be started.
int run_launch(const Launch& launch, const Patience& patience = {});

/// Returns the command line of this process, with the program's full path.
std::vector<std::string> own_command();

/// For verbs with --ranks: returns the exit code of the ranks that were started, or nothing when
/// this process is itself a rank (or the only one) and continues. `launcher_size` is the number of
/// ranks of the launcher this process runs under, 0 without one. Throws ConfigError when --ranks
/// contradicts it.
std::optional<int> launch_ranks(int ranks, const RankThreads& requested, int launcher_size,
                                const Patience& patience = {});

}  // namespace tutti::cli
