#include "tutti/train/rounds/rounds.h"

#include "tutti/train/rounds/every_step.h"
#include "tutti/train/rounds/rounds_kinds.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::train {

RoundsKind rounds_kind(const config::RunConfig& config, int devices, int replicas,
                       bool has_machine) {
  constexpr int64_t kAnyEpoch = 1;  // whether replicas are apart does not depend on it
  if (meeting_settings(config, kAnyEpoch)) return RoundsKind::apart;
  if (!served_settings(config, devices)) return RoundsKind::every_step;
  if (!has_machine && served_by_ranks(config, devices)) return RoundsKind::served_by_ranks;
  return applied_one_by_one(config, replicas) ? RoundsKind::served_replay : RoundsKind::every_step;
}

std::unique_ptr<Rounds> make_rounds(const RoundsSpec& spec) {
  const config::RunConfig& config = spec.config;
  switch (rounds_kind(config, spec.devices, spec.replicas.replicas(), spec.machine != nullptr)) {
    case RoundsKind::every_step: break;
    case RoundsKind::apart:
      return make_apart(spec, *meeting_settings(config, spec.steps_per_epoch));
    case RoundsKind::served_replay:
      return make_served_replay(spec, *served_settings(config, spec.devices));
    case RoundsKind::served_by_ranks:
      return make_served_by_ranks(spec, *served_settings(config, spec.devices));
  }
  return std::make_unique<EveryStep>(spec);
}

}  // namespace tutti::train
