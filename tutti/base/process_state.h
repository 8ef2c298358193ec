#pragma once
// Reads the kernel's view of this machine and of another process on it.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

struct ProcessState {
  char state = 0;  ///< R, S, D, T ... as in /proc/PID/stat
  pid_t parent = 0;
  uint64_t began = 0;  ///< clock ticks from the machine's start: distinguishes it from a later
                       ///< process with the same number

  bool runs() const { return state != 'Z' && state != 'X'; }  ///< it has not ended; a zombie has
  bool stopped() const { return state == 'T'; }               ///< by a signal, until SIGCONT
};

/// Returns the name from gethostname(2), its first 255 bytes.
std::string host_name();

/// Parses a line of /proc/PID/stat. Returns nothing if it makes no sense.
std::optional<ProcessState> parse_process_state(std::string_view line);

/// Returns nothing if there is no such process, or no /proc.
std::optional<ProcessState> process_state(pid_t process);

}  // namespace tutti
