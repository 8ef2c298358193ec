#pragma once
// What the machine under this process is, and how much of it this process may use. Linux, through
// hwloc.

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

struct CacheLevel {
  int level;      ///< 1 is the data cache nearest to the core
  int64_t bytes;  ///< of one instance
  int instances;
};

struct Topology {
  std::string cpu_model;
  int sockets = 1;
  int numa_nodes = 1;
  int cores = 1;             ///< physical cores that this process's container or job may use
  int hardware_threads = 1;  ///< of those cores
  int bound_cores =
      1;  ///< physical cores in this process's affinity mask; < cores: somebody pinned it
  std::vector<int> bound_processors;  ///< one hardware thread of each of those cores, by the
                                      ///< kernel's number, rising
  int team_cores = 0;    ///< of the bound cores, those on which OpenMP's variables let compute
                         ///< threads run (limit_teams); 0: all of them
  double cpu_quota = 0;  ///< processors' worth of time that control groups grant; 0: no limit
  std::vector<CacheLevel> caches;  ///< rising level
  int64_t memory_bytes = 0;        ///< of the machine, or a control group's limit when that is less
  int64_t available_bytes = 0;     ///< not in use at the time of the call

  /// Cores on which compute threads make sense: `cores`, or the quota rounded up when that is less.
  int usable_cores() const;
  /// Cores of this process's binding that its compute threads may have.
  int cores_of_team() const { return team_cores > 0 ? team_cores : bound_cores; }
};

/// Reads it anew at every call (some milliseconds): the one place that knows what this process may
/// use, with the control groups' limits in it. Throws DeviceError when hwloc fails.
Topology read_topology();

/// The affinity mask of the calling thread as processor numbers, "0-3,8".
std::string affinity_list();

/// Lets `thread` run on this processor alone. Throws DeviceError when the kernel does not.
void bind_thread(pthread_t thread, int processor);

/// Tells read_topology() which processors OpenMP leaves to compute threads; empty: all. Once, at
/// the start of the process.
void limit_teams(std::vector<int> processors);

/// Bytes from a line of /proc/meminfo ("MemAvailable:   123 kB"), or 0 when the key is absent.
int64_t parse_meminfo(const std::string& text, const std::string& key);

}  // namespace tutti
