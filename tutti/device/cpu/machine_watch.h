#pragma once
// How much of the processors other work has while something is measured. Linux.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tutti/trace/machine_use.h"

namespace tutti {

/// Processor time since a watch began: seconds, summed over the processors that the process may run
/// on; of several processes the sums of all.
struct ProcessorTime {
  double there = 0;  ///< seconds x processors
  double busy = 0;   ///< with processes of anybody, and with the kernel's work for them
  double steal = 0;  ///< that a hypervisor gave to other machines
  double own = 0;    ///< of this process and of its children that have ended
  double periods = 0, throttled_periods = 0;  ///< of the quota of the control group
  double seconds = 0;                         ///< of the watch; of several processes their sum

  /// As shares. NaN where the system does not say, or not enough time has passed to tell.
  MachineUse shares() const;
  ProcessorTime& operator+=(const ProcessorTime& other);
  ProcessorTime& operator-=(const ProcessorTime& other);
  /// As if so many processes that all run on these processors had counted them once.
  ProcessorTime shared_by(double processes) const;
};

/// Reads some small files when it is made and at each call. For one thread.
class MachineWatch {
 public:
  /// The files of the system lie below `root`.
  explicit MachineWatch(std::filesystem::path root = "/");
  ProcessorTime so_far() const;
  MachineUse use() const { return so_far().shares(); }
  /// The processors of the sums, rising: those of the affinity of the thread that made the watch.
  const std::vector<int>& processors() const { return processors_; }

 private:
  ProcessorTime reading() const;  ///< since some time long ago
  std::filesystem::path root_;
  std::vector<int> processors_;
  ProcessorTime begin_;
};

/// Sums of the lines "cpuN ..." of /proc/stat that `processors` name: there, busy and steal.
ProcessorTime parse_processor_time(const std::string& stat, const std::vector<int>& processors);

}  // namespace tutti
