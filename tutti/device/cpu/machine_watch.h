#pragma once
// Measures how much of the processors other work takes during a measurement. Linux.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tutti/trace/machine_use.h"

namespace tutti::device {

/// Processor time since a watch began: seconds, summed over the processors that the process may run
/// on. For several processes: the sums of all.
struct ProcessorTime {
  double there = 0;  ///< seconds x processors
  double busy = 0;   ///< in processes of anybody, and in the kernel's work for them
  double steal = 0;  ///< given to other machines by a hypervisor
  double own = 0;    ///< in this process and its children that have ended
  double periods = 0, throttled_periods = 0;  ///< scheduling periods of the control group's quota
  double seconds = 0;                         ///< duration of the watch; summed over processes

  /// Returns shares of the time. NaN if the system does not report it, or if too little time has
  /// passed to tell.
  trace::MachineUse shares() const;
  ProcessorTime& operator+=(const ProcessorTime& other);
  ProcessorTime& operator-=(const ProcessorTime& other);
  /// Returns the times as if `processes` processes that all run on these processors had counted
  /// them once.
  ProcessorTime shared_by(double processes) const;
};

/// Reads some small files when constructed and at each call. For one thread.
class MachineWatch {
 public:
  /// The system's files are read below `root`.
  explicit MachineWatch(std::filesystem::path root = "/");
  ProcessorTime so_far() const;
  trace::MachineUse use() const { return so_far().shares(); }
  /// Returns the processors summed over, in rising order: the affinity of the thread that made the
  /// watch.
  const std::vector<int>& processors() const { return processors_; }

 private:
  ProcessorTime reading() const;  ///< counts from some time long ago
  std::filesystem::path root_;
  std::vector<int> processors_;
  ProcessorTime begin_;
};

/// Sums the lines "cpuN ..." of /proc/stat that `processors` names: there, busy and steal.
ProcessorTime parse_processor_time(const std::string& stat, const std::vector<int>& processors);

}  // namespace tutti::device
