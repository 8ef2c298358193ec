#pragma once
// RunReport: writes a run's record and log, including the gradient's noise scale.

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

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class RunReport {
 public:
  /// `run` must outlive this object.
  explicit RunReport(Running& run) : run_(run) {}

  /// Collective; call it when the step exists. Sets up its measurement of noise.
  void watch_step();
  /// Collective. Begins or continues the record.
  void open_record();
  void start();

  void show_step();
  void log_steps();  ///< Collective.
  void end_epoch();  ///< Collective.
  /// Collective. Reports the steps since the last call, whose sums have all arrived.
  void report_noise();
  void save_noise(std::map<std::string, double>& metrics);
  /// Begins to average noise, or goes on with a checkpoint's averages; call it when the step
  /// exists.
  void start_noise(const keep::Checkpoint* resumed);

  /// Collective. Reports how the run has ended; `test` measures the test set between the lines that
  /// come before and after it.
  void end(trace::RunStatus status, const std::string& reason, const std::function<void()>& test);
  /// Writes the record's last line on the rank that sees the cause, whichever it is: rank 0 may be
  /// ended before it learns of it. Errors of communication have their cause elsewhere, so for those
  /// rank 0's line is enough.
  void record_failure(const std::exception& error);

 private:
  trace::RunStart start_event();
  double flop_per_sample();
  /// Returns the mean over all micro-batches of all replicas, given one value per local one.
  double mean_over_batches(std::span<const double> local);
  ProgressState progress(double loss) const;
  /// Logs the noise scale; called once per epoch.
  void log_noise() const;
  void report_compression();
  /// Reports the sources of samples since the last call. Collective.
  void report_data();
  /// Reports how the stages have spent the epoch. Collective.
  void report_stages();
  /// Returns why this and other ranks left samples out since the last call. Collective.
  std::vector<std::string> new_reasons();
  /// Records the machine's other work since the last call; `ends`: also logs it. Collective.
  void report_machine(bool ends);
  /// Returns the flags with which the run can continue beyond its end.
  std::string beyond_this_end() const;
  trace::RunStop stop_event(trace::RunStatus status, const std::string& reason) const;

  Running& run_;
  std::optional<sync::Stragglers> stragglers_;
  std::optional<device::MachineWatch> watch_;  // since the training began
  device::ProcessorTime machine_recorded_;     // already in the record
  NoiseAverage noise_;
  std::vector<NoiseAverage> layer_noise_;  // by parameter, with run.noise_layers
  RunClock::Clock::time_point started_;
  double startup_seconds_ = 0;
  double logged_loss_ = std::numeric_limits<double>::quiet_NaN();  // in the last line
  std::vector<double> data_sums_;  // sums over all ranks at the last report_data()
  size_t reasons_recorded_ = 0;
};

}  // namespace tutti::train
