#pragma once
// ServedReplay: a replay of workers who take the weights from servers, and send gradients of them
// that are applied when they arrive. A ServerClock says what a gradient is of and when it comes;
// the data stay in the order of the seed: the n-th gradient of a step is of its n-th batches,
// whoever's it is.
//
// The step's own weights and optimizer state are the servers'. A copy is kept of each version of
// them that a worker has and the servers have no longer.

#include <cstdint>
#include <map>
#include <vector>

#include "tutti/sync/server_clock.h"
#include "tutti/train/rounds/rounds.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti {

class ServedReplay final : public Rounds {
 public:
  ServedReplay(const RoundsSpec& spec, const ServerSettings& settings);

  void start(const Checkpoint* resumed, int64_t step) override;
  void begin(int64_t first, int64_t end) override;
  std::optional<RoundGradient> next(int signal) override;
  int64_t end(int signal) override;
  StepTimes times() const override { return times_; }
  void report(int64_t step, RunRecord* record) override;
  std::optional<double> virtual_seconds() const override { return clock_.seconds(); }
  double take_virtual_wait() override { return clock_.take_waited(); }
  void collect_state() override;
  /// The servers' state, "servers/clock", and each version of the weights that workers have and
  /// servers no longer as "NAME.version 12".
  std::vector<TensorRef> state() override;
  std::vector<TensorRef> own_state() override { return spec_.step.exchange().compression_state(); }

 private:
  struct Version {
    int workers = 0;  // who have it
    Buffer copy;      // empty: it is the servers' own
  };
  void restore(const SafetensorsFile& state, double seconds, int64_t step);
  RoundGradient begin_gradient();
  void apply();
  const std::byte* weights_of(int64_t version) const;
  Buffer room() const;
  void keep_current();
  void release(int64_t version);
  /// Who has which version, as the clock says.
  void count_workers();

  const RoundsSpec spec_;
  const ServerSettings settings_;
  ServerClock clock_;                    // it has got to arrived_
  std::map<int64_t, Version> versions_;  // that any worker has
  std::vector<Buffer> free_;
  ArrivedGradient arrived_;
  LateGradient late_;
  int64_t step_ = 0;
  int made_ = 0;  // micro-batches of this step
  StepTimes times_;
};

}  // namespace tutti
