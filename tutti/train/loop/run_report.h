#pragma once
// RunReport: what the record and the log say of a run, and the gradient's noise scale in them.

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/device/cpu/machine_watch.h"
#include "tutti/sync/stragglers.h"
#include "tutti/train/loop/running.h"
#include "tutti/train/step/noise_scale.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class RunReport {
 public:
  /// `run` outlives it.
  explicit RunReport(Running& run) : run_(run) {}

  /// Collective, when the step is there: how it measures noise from now on.
  void watch_step();
  /// Collective. The run begins, or goes on.
  void open_record();
  void start();

  void show_step();
  void log_steps();  ///< Collective.
  void end_epoch();  ///< Collective.
  /// Collective. Of the steps since the last time, whose sums have all arrived.
  void report_noise();
  void save_noise(std::map<std::string, double>& metrics) const;

  /// Collective. How the run has ended; `test` measures the test set between the lines that come
  /// before and after it.
  void end(RunStatus status, const std::string& reason, const std::function<void()>& test);
  /// The rank that sees the cause writes the record's last line, whichever it is: rank 0 may be
  /// ended before it hears of it. Errors of communication have their cause elsewhere, so of those
  /// rank 0's is enough.
  void record_failure(const std::exception& error);

 private:
  RunStart start_event();
  double flop_per_sample();
  /// Mean over all micro-batches of all replicas, one value of each local one.
  double mean_over_batches(std::span<const double> local);
  ProgressState progress(double loss) const;
  void restore_noise(const std::map<std::string, double>& metrics);
  /// Says it once an epoch.
  void log_noise() const;
  void report_compression();
  /// Where samples came from since the last time. Collective.
  void report_data();
  /// How the stages have spent the epoch. Collective.
  void report_stages();
  /// Why this and other ranks left samples out since the last time. Collective.
  std::vector<std::string> new_reasons();
  /// Records the machine's work beside the run since the last time; `ends`: it says so. Collective.
  void report_machine(bool ends);
  /// The flags with which the run goes on beyond what has ended it.
  std::string beyond_this_end() const;
  RunStop stop_event(RunStatus status, const std::string& reason) const;

  Running& run_;
  std::optional<Stragglers> stragglers_;
  std::optional<MachineWatch> watch_;  // since the training began
  ProcessorTime machine_told_;         // in the record
  NoiseAverage noise_;
  std::vector<NoiseAverage> layer_noise_;  // of each parameter, with run.noise_layers
  RunClock::Clock::time_point started_;
  double startup_seconds_ = 0;
  double logged_loss_ = std::numeric_limits<double>::quiet_NaN();  // of the last line
  std::vector<double> data_sums_;  // of all ranks, as report_data() had them last
  size_t reasons_told_ = 0;
};

}  // namespace tutti
