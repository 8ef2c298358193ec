#pragma once
// ProcessWatch: finds out which of a job's ranks on this node are still alive.

#include <sys/types.h>

#include <vector>

namespace tutti::comm {

class ProcessWatch {
 public:
  /// `processes[p]` is rank p's process id, 0 for ranks that cannot be watched (other nodes, this
  /// rank). To be made while all ranks are known to be alive: a process that is invisible then (in
  /// another process namespace) is never reported dead later.
  explicit ProcessWatch(std::vector<pid_t> processes);

  bool watches(int rank) const { return processes_[static_cast<size_t>(rank)] != 0; }
  pid_t process(int rank) const { return processes_[static_cast<size_t>(rank)]; }
  /// Returns whether the process has ended, also when its parent has not yet collected it. Makes
  /// two system calls.
  bool gone(int rank) const;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace tutti::comm
