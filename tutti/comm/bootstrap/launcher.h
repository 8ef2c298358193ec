#pragma once
// Finds which launcher started this process, as which rank of how many, from the variables that
// launchers set. The environment is given as a function, because only the program's entry reads it.

#include <functional>
#include <string>
#include <string_view>

namespace tutti::comm {

struct Launcher {
  std::string name = "none";  ///< torchrun, jsrun, pals, mvapich, openmpi, flux, mpich, srun;
                              ///< "none": a single process
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< -1 when the launcher does not report it
  int local_size = 1;  ///< -1 when the launcher does not report it, or contradicts itself

  bool operator==(const Launcher&) const = default;
  std::string to_string() const;  ///< "srun: rank 3 of 8, local rank 1 of 4"
};

/// Returns the value of a variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// Finds the launcher. Variables of a launcher that runs inside another's allocation win: mpirun in
/// a Slurm job sees both, and Slurm's then number the daemons of mpirun, not the ranks. A Slurm
/// batch script that starts no step is a single process. Throws ConfigError, naming the variable,
/// for values that make no sense.
Launcher detect_launcher(const Environment& environment);

/// Reports where MPI contradicts the launcher of this process: "srun started this process as rank
/// 0 of 2, but MPI says that it is rank 0 of 1: ..." with advice. Empty where the two agree, and
/// without a launcher. Such processes must not go on: each would do all the work, and write into
/// the others' files.
std::string disagreement(const Launcher& launcher, int mpi_rank, int mpi_size,
                         const std::string& mpi_library);

/// Makes the kernel kill this process, a rank, when the process that started it ends, even if it is
/// stopped then. To be called first in main.
///
/// The kernel watches the *thread* that started this process. Open MPI's launchers and daemons
/// start ranks from their main thread, or from threads that end with them; Hydra's proxies and
/// Slurm's step daemons have no others. On other nodes the parent is the launcher's daemon there,
/// which ends when it has lost the launcher. A launcher that has died before this call needs no
/// handling: MPI cannot be started then.
void end_with_launcher();

/// A rank's last action before it ends the whole job: with MPI_Abort, or, because a call into MPI
/// has blocked for too long, with its own exit. It gets the report that is not printed yet, or "",
/// and may be called by any thread. Without an action of the program's own the report is printed.
using LastAct = void (*)(std::string_view report) noexcept;
void set_last_act(LastAct act);
void do_last_act(std::string_view report) noexcept;

}  // namespace tutti::comm
