#pragma once
// Settings from the environment variables of the MLSL interface. docs/mlsl.md has the table.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/log.h"
#include "tutti/comm/bootstrap/launcher.h"

namespace tutti::mlsl {

struct Settings {
  log::Level log_level =
      log::Level::warn;     ///< MLSL_LOG_LEVEL: 0 errors and warnings, 1 info, 2 debug, 3 trace
  bool statistics = false;  ///< MLSL_STATS
  /// MLSL_MSG_PRIORITY with MLSL_MSG_PRIORITY_MODE 1: of exchanges of at least priority_threshold
  /// bytes, the one started last goes first.
  bool newest_first = false;
  size_t priority_threshold = 10000;       ///< MLSL_MSG_PRIORITY_THRESHOLD
  size_t large_bytes = size_t{128} << 20;  ///< MLSL_LARGE_MSG_SIZE_MB: split from this size on
  size_t large_chunks = 4;                 ///< MLSL_LARGE_MSG_CHUNKS
  size_t heap_bytes =
      size_t{32}
      << 20;  ///< MLSL_HEAP_SIZE_GB, a decimal number. Reserved at Init, so the default is small
  int servers = 0;  ///< MLSL_NUM_SERVERS: threads of this process that move exchanges forward
  std::vector<int> server_cores;     ///< MLSL_SERVER_AFFINITY; empty: not bound
  double timeout = 600;              ///< MLSL_TIMEOUT (not in MLSL 1.0): seconds, for every wait
  std::vector<std::string> ignored;  ///< variables of MLSL that are set, but have no effect here
};

/// Returns the core of each server of the `local_rank`-th process on its node, for comm::Progress:
/// the processes of a node take server_cores one after another, and start again when the list ends.
std::vector<int> cores_of_servers(const Settings& settings, int local_rank);

/// Throws ConfigError, naming MLSL_HEAP_SIZE_GB, if the heaps of `ranks` ranks do not fit into the
/// available memory. The heap is reserved at once, and without this check the kernel would end
/// arbitrary processes.
void check_heap(size_t heap_bytes, int ranks, int64_t available_bytes);

/// Reads the settings. Throws ConfigError, naming the variable, for an invalid value.
Settings read_settings(const comm::Environment& variables);

}  // namespace tutti::mlsl
