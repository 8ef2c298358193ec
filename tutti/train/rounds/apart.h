#pragma once
// Apart: each replica has its own weights and follows its own gradients; between steps the replicas
// meet (sync/meeting.h).

#include "tutti/sync/meeting.h"
#include "tutti/train/rounds/every_step.h"

namespace tutti::train {

class Apart final : public EveryStep {
 public:
  Apart(const RoundsSpec& spec, const sync::MeetingSettings& settings);

  void start(const keep::Checkpoint* resumed, int64_t step) override;
  void begin(int64_t first, int64_t end) override;
  std::optional<RoundGradient> next(int signal) override;
  int64_t end(int signal) override;
  bool has_model() const override { return true; }
  void model(std::span<float> weights) override { meeting_->model(values_, weights); }
  bool first_stands_for_all() const override { return settings_.kind == sync::MeetingKind::never; }
  void report(int64_t step, trace::RunRecord* record) override;
  void save(keep::SavedRun& saved) override;

 private:
  const sync::MeetingSettings settings_;
  const std::unique_ptr<sync::Meeting> meeting_;
  std::vector<sync::ReplicaValues> values_;         // by local replica
  int made_here_ = 0;                               // local replicas done in this step
  int64_t meetings_before_ = 0, bytes_before_ = 0;  // at the last report
  double seconds_ = 0;                              // since the last report
};

}  // namespace tutti::train
