#pragma once
// ReplayClock: the time of a replay whose gradients are summed in every step, or whose replicas
// meet between steps: by collectives (VirtualClock) or at servers that take all gradients together
// (ServerClock).

#include <memory>
#include <vector>

#include "tutti/sync/server_clock.h"
#include "tutti/train/rounds/rounds.h"

namespace tutti {

/// Not thread-safe.
class ReplayClock {
 public:
  virtual ~ReplayClock() = default;
  /// Takes what the checkpoint has of it; null: a new run.
  virtual void start(const Checkpoint* resumed, int64_t step) = 0;
  /// Collective, after a step, counted from 0.
  virtual void follow(int64_t step) = 0;
  virtual double seconds() const = 0;
  /// Mean seconds in which a replica waited since the last call.
  double take_waited() { return std::exchange(waited_, 0.0); }
  /// For the state file of a checkpoint.
  virtual TensorRef state() const = 0;
  /// Collective, as Rounds::report().
  virtual void report(int64_t /*step*/, RunRecord* /*record*/) {}

 protected:
  double waited_ = 0;
};

/// Null where the run is no replay.
std::unique_ptr<ReplayClock> make_replay_clock(const RoundsSpec& spec);

/// The size of a gradient's buckets on a machine that is not at hand. It is not the plan's own:
/// that follows a measurement of the network at hand.
size_t clock_bucket_bytes(const RunConfig& config);
ServerClockSpec server_clock_spec(const RoundsSpec& spec);
/// Seconds until the checkpoint's step on the machine of its replay; 0 where it was none.
double virtual_seconds_of(const Checkpoint* resumed);

/// Warns of slow devices of the machine on which no replica is.
void warn_of_slow_devices(const RoundsSpec& spec);
/// All workers of servers begin at `step` with their weights, which the log says.
void warn_of_new_workers(int64_t step);

/// As "servers/clock", and back: false where the file has none, or of other workers.
TensorRef export_clock(const ServerClock& clock);
bool import_clock(const SafetensorsFile& file, ServerClock& clock);

/// What came of gradients in an epoch, by that clock.
ServersRecord servers_line(const ServerClock& clock, const ServerCounts& counts, int64_t step,
                           int64_t steps_per_epoch);
/// Says a line in the log and the record. `one_by_one`: gradients were applied so.
void report_servers(ServersRecord line, bool one_by_one, RunRecord* record);

}  // namespace tutti
