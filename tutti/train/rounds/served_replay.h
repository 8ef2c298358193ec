#pragma once
// ServedReplay: a replay of workers that take the weights from servers, and send gradients that are
// applied on arrival. A ServerClock determines the weights with which a gradient is computed and
// the time of its arrival. The data stay in the order of the seed: the n-th gradient of a step uses
// the step's n-th batches, whichever worker makes it.
//
// The step's own weights and optimizer state are the servers'. Each older version that a worker
// still uses is kept as a copy.

#include <cstdint>
#include <map>
#include <vector>

#include "tutti/sync/server_clock.h"
#include "tutti/train/rounds/rounds.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::train {

class ServedReplay final : public Rounds {
 public:
  ServedReplay(const RoundsSpec& spec, const ServerSettings& settings);

  void start(const keep::Checkpoint* resumed, int64_t step) override;
  void begin(int64_t first, int64_t end) override;
  std::optional<RoundGradient> next(int signal) override;
  int64_t end(int signal) override;
  StepTimes times() const override { return times_; }
  void report(int64_t step, trace::RunRecord* record) override;
  std::optional<double> virtual_seconds() const override { return clock_.seconds(); }
  double take_virtual_wait() override { return clock_.take_waited(); }
  /// Returns the servers' state, "servers/clock", and, as "NAME.version 12", each version of the
  /// weights that workers use and servers no longer have.
  void save(keep::SavedRun& saved) override;

 private:
  struct Version {
    int workers = 0;      // how many use it
    device::Buffer copy;  // empty: equals the servers' own
  };
  void restore(const keep::SafetensorsFile& state, double seconds, int64_t step);
  RoundGradient begin_gradient();
  void apply();
  const std::byte* weights_of(int64_t version) const;
  device::Buffer room() const;
  void keep_current();
  void release(int64_t version);
  /// Counts the workers that use each version, from the clock's state.
  void count_workers();

  const RoundsSpec spec_;
  const ServerSettings settings_;
  sync::ServerClock clock_;              // has advanced to arrived_
  std::map<int64_t, Version> versions_;  // those that any worker uses
  std::vector<device::Buffer> free_;
  sync::ArrivedGradient arrived_;
  LateGradient late_;
  int64_t step_ = 0;
  int made_ = 0;  // micro-batches of this step
  StepTimes times_;
};

}  // namespace tutti::train
