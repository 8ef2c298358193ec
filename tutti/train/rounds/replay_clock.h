#pragma once
// ReplayClock: the time of a replay whose gradients are summed in every step, or whose replicas
// meet between steps: by collectives (VirtualClock) or at servers that take all gradients together
// (ServerClock).

#include <memory>
#include <vector>

#include "tutti/sync/server_clock.h"
#include "tutti/train/rounds/rounds.h"

namespace tutti::train {

/// Not thread-safe.
class ReplayClock {
 public:
  virtual ~ReplayClock() = default;
  /// Restores the clock from the checkpoint; null: a new run.
  virtual void start(const keep::Checkpoint* resumed, int64_t step) = 0;
  /// Collective; call it after each step, counted from 0.
  virtual void follow(int64_t step) = 0;
  virtual double seconds() const = 0;
  /// Returns the mean seconds that a replica waited since the last call.
  double take_waited() { return std::exchange(waited_, 0.0); }
  /// Returns the clock's state for a checkpoint's state file.
  virtual keep::TensorRef state() const = 0;
  /// Collective, like Rounds::report().
  virtual void report(int64_t /*step*/, trace::RunRecord* /*record*/) {}

 protected:
  double waited_ = 0;
};

/// Returns null if the run is not a replay.
std::unique_ptr<ReplayClock> make_replay_clock(const RoundsSpec& spec);

/// Returns the size of a gradient's buckets on the described machine. It differs from the plan's
/// own, which follows a measurement of the present network.
size_t clock_bucket_bytes(const config::RunConfig& config);
sync::ServerClockSpec server_clock_spec(const RoundsSpec& spec);
/// Returns the seconds until the checkpoint's step on its replay's machine; 0 if it was no replay.
double virtual_seconds_of(const keep::Checkpoint* resumed);

/// Warns of slow devices of the machine on which there is no replica.
void warn_of_slow_devices(const RoundsSpec& spec);
/// Logs that all workers of servers begin at `step` with the step's weights.
void warn_of_new_workers(int64_t step);

/// Stores the clock as "servers/clock", and restores it: false if the file has none, or other
/// workers'.
keep::TensorRef export_clock(const sync::ServerClock& clock);
bool import_clock(const keep::SafetensorsFile& file, sync::ServerClock& clock);

/// Writes the counts of the gradients up to `step` to the log and the record, if there is one.
void report_servers(const RoundsSpec& spec, const sync::ServedCounts& counts, int64_t step,
                    trace::RunRecord* record);

}  // namespace tutti::train
