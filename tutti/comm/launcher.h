#pragma once
// Who started this process as which rank of how many: read from the variables that launchers set.
// The environment is given as a function, because only the program's entry reads it.

#include <functional>
#include <string>

namespace tutti::comm {

struct Launcher {
  std::string name = "none";  ///< torchrun, jsrun, pals, mvapich, openmpi, flux, mpich, srun;
                              ///< "none": a single process
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< -1 when the launcher does not say
  int local_size = 1;  ///< -1 when the launcher does not say

  bool operator==(const Launcher&) const = default;
  std::string to_string() const;  ///< "srun: rank 3 of 8, local rank 1 of 4"
};

/// Returns the value of a variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// Variables of a launcher that runs inside another's allocation win: mpirun in a Slurm job sees
/// both, and Slurm's then number the daemons of mpirun, not the ranks. A Slurm batch script that
/// starts no step is a single process. Throws ConfigError, naming the variable, for values that
/// make no sense.
Launcher detect_launcher(const Environment& environment);

}  // namespace tutti::comm
