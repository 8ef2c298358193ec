#pragma once
// Describes the machine under this process, and how much of it the process may use. Linux, through
// hwloc.

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::device {

struct CacheLevel {
  int level;      ///< 1 is the data cache nearest to the core
  int64_t bytes;  ///< size of one cache
  int instances;
};

struct Topology {
  std::string cpu_model;
  int sockets = 1;
  int numa_nodes = 1;
  int cores = 1;             ///< physical cores that this process's container or job may use
  int hardware_threads = 1;  ///< on those cores
  int bound_cores =
      1;  ///< physical cores in this process's affinity mask; < cores: the process is pinned
  std::vector<int> bound_processors;  ///< one hardware thread of each bound core, as kernel numbers
                                      ///< in rising order
  int team_cores = 0;    ///< bound cores on which OpenMP's variables let compute threads run
                         ///< (limit_teams); 0: all of them
  double cpu_quota = 0;  ///< processors' worth of time that control groups grant; 0: no limit
  std::vector<CacheLevel> caches;  ///< rising level
  int64_t memory_bytes = 0;        ///< the machine's, or a smaller limit of a control group
  int64_t available_bytes = 0;     ///< not in use at the time of the call

  /// Returns the cores on which compute threads make sense: `cores`, or the quota rounded up if
  /// that is less.
  int usable_cores() const;
  /// Returns the bound cores that compute threads may use.
  int cores_of_team() const { return team_cores > 0 ? team_cores : bound_cores; }
};

/// Reads the topology anew at every call (some milliseconds). This is the only function that
/// knows what the process may use, the control groups' limits included. Throws DeviceError when
/// hwloc fails.
Topology read_topology();

/// Returns the affinity mask of the calling thread as processor numbers, "0-3,8".
std::string affinity_list();

/// Lets `thread` run on this processor only. Throws DeviceError when the kernel refuses.
void bind_thread(pthread_t thread, int processor);

/// Sets the processors that OpenMP leaves to compute threads, for read_topology(); empty: all. Call
/// it once, at the start of the process.
void limit_teams(std::vector<int> processors);

/// Returns bytes from a line of /proc/meminfo ("MemAvailable:   123 kB"), or 0 if the key is
/// absent.
int64_t parse_meminfo(const std::string& text, const std::string& key);

}  // namespace tutti::device
