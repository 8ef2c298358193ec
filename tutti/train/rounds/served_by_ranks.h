#pragma once
// ServedByRanks: servers of weights that are ranks (train/rounds/rank_servers.h). A rank makes the
// gradient of a ticket, sends it, and takes the next ticket with new weights; all ranks meet at the
// end of a round of several steps.

#include <optional>

#include "tutti/train/rounds/rank_servers.h"
#include "tutti/train/rounds/rounds.h"

namespace tutti::train {

class ServedByRanks final : public Rounds {
 public:
  /// Throws ConfigError if batches depend on the previous step: a batch goes to any free worker.
  ServedByRanks(const RoundsSpec& spec, const ServerSettings& settings);

  void start(const keep::Checkpoint* resumed, int64_t step) override;
  bool takes_several_steps() const override { return true; }
  void begin(int64_t first, int64_t end) override;
  std::optional<RoundGradient> next(int signal) override;
  int64_t end(int signal) override;
  int asked() const override { return servers_->asked(); }
  StepTimes times() const override { return times_; }
  double computed() const override { return computed_; }
  void report(int64_t step, trace::RunRecord* record) override;
  void save(keep::SavedRun& saved) override;
  void dismiss(trace::RunStatus status) override { servers_->dismiss(status); }

 private:
  void say_who_serves() const;
  void note(int64_t ticket);
  /// Returns the replica whose samples this rank uses for a ticket.
  int replica_of(int64_t ticket) const;
  int64_t step_of(int64_t ticket) const { return ticket / servers_->gradients(); }
  void count_gradient();

  const RoundsSpec spec_;
  const ServerSettings settings_;
  std::optional<RankServers> servers_;
  bool making_ = false;  // a gradient is being made
  double busy_before_ = 0, computed_ = 0;
  StepTimes times_;
};

}  // namespace tutti::train
