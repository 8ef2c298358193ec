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
  double cpu_quota = 0;  ///< processors' worth of time that the control group grants; 0: no limit
  std::vector<CacheLevel> caches;  ///< rising level
  int64_t memory_bytes = 0;     ///< of the machine, or the control group's limit when that is less
  int64_t available_bytes = 0;  ///< not in use at the time of the call

  /// Cores on which compute threads make sense: `cores`, or the quota rounded up when that is less.
  int usable_cores() const;
};

/// Reads it anew at every call (some milliseconds). Throws DeviceError when hwloc fails.
Topology read_topology();

/// The affinity mask of the calling thread as processor numbers, "0-3,8".
std::string affinity_list();

/// Lets `thread` run on this processor alone. Throws DeviceError when the kernel does not.
void bind_thread(pthread_t thread, int processor);

/// Processor time from the text of cgroup v2's cpu.max ("150000 100000" is 1.5, "max 100000" is 0:
/// no limit).
double parse_cpu_quota(const std::string& text);

/// Bytes from a line of /proc/meminfo ("MemAvailable:   123 kB"), or 0 when the key is absent.
int64_t parse_meminfo(const std::string& text, const std::string& key);

}  // namespace tutti
