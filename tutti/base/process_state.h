#pragma once
// What the kernel says of this machine and of another of its processes.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tutti {

struct ProcessState {
  char state = 0;  ///< R, S, D, T ... as in /proc/PID/stat
  pid_t parent = 0;
  uint64_t began = 0;  ///< clock ticks since the machine started: tells it from a later process
                       ///< that got the same number

  bool runs() const {
    return state != 'Z' && state != 'X';
  }                                              ///< it is not what is left of one that has ended
  bool stopped() const { return state == 'T'; }  ///< by a signal, until SIGCONT
};

/// As gethostname(2) has it, its first 255 bytes.
std::string host_name();

/// A line of /proc/PID/stat. Nothing where it makes no sense.
std::optional<ProcessState> parse_process_state(std::string_view line);

/// Nothing where there is no such process, or no /proc.
std::optional<ProcessState> process_state(pid_t process);

}  // namespace tutti
