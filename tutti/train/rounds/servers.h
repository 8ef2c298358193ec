#pragma once
// Servers: a replay of workers who take the weights, and send gradients of them that are applied
// when they arrive. What a gradient is of, and when it comes, says a ServerClock; the data stay in
// the order of the seed: the n-th gradient of a step is of its n-th batches, whoever's it is.
//
//   Servers servers(...);  for each gradient: begin(rate); step.run() for its turns; apply()
//
// The step's own weights and optimizer state are the servers'. A copy is kept of each version of
// them that a worker has and the servers have no longer.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tutti/keep/named_tensor.h"
#include "tutti/keep/safetensors.h"
#include "tutti/sync/server_clock.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// As "servers/clock", and back: false where the file has none, or of other workers.
NamedTensor export_clock(const ServerClock& clock);
bool import_clock(const SafetensorsFile& file, ServerClock& clock);

/// Not thread-safe.
class Servers {
 public:
  /// `step` was made for `settings.group_of(...)` replicas a gradient, and must outlive this.
  /// `spill`: folder for the versions of the weights; empty: memory.
  Servers(const ServerSettings& settings, ServerClockSpec clock, TrainingStep& step,
          std::string spill = {});

  /// The next gradient is made by the turns that follow; its update has the learning rate `rate`.
  void begin(double rate);
  /// Applies it, and gives the servers' weights to who takes them then.
  void apply();

  const ServerClock& clock() const { return clock_; }
  /// Mean seconds of a worker's device since the last call (ServerClock::take_waited()).
  double take_waited() { return clock_.take_waited(); }
  ServerCounts take_counts() { return clock_.take_counts(); }

  /// What a checkpoint holds besides the step's weights and state: "servers/clock", and each
  /// version of the weights that workers have as "NAME.version 12".
  std::vector<NamedTensor> state() const;
  /// The reverse, after the step's weights have been restored. A checkpoint of a run without
  /// servers or of other workers has none of it: then all begin with its weights, at `seconds`,
  /// with `left` gradients until they meet, and false is returned.
  bool restore(const SafetensorsFile& state, double seconds, int64_t version, int64_t left);

 private:
  struct Version {
    int workers = 0;  // who have it
    Buffer copy;      // empty: it is the servers' own
  };
  const std::byte* weights_of(int64_t version) const;
  Buffer room() const;
  void keep_current();
  void release(int64_t version);
  /// Who has which version, as the clock says.
  void count_workers();

  const ServerSettings settings_;
  ServerClock clock_;  // it has got to arrived_
  TrainingStep& step_;
  const std::string spill_;
  std::map<int64_t, Version> versions_;  // that any worker has
  std::vector<Buffer> free_;
  ArrivedGradient arrived_;
};

}  // namespace tutti
