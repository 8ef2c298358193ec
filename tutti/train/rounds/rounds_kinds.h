#pragma once
// The rounds that have a file of their own, except EveryStep; make_rounds() calls these functions.

#include <memory>

#include "tutti/sync/meeting.h"
#include "tutti/train/rounds/rounds.h"
#include "tutti/train/settings/server_settings.h"

namespace tutti::train {

std::unique_ptr<Rounds> make_apart(const RoundsSpec& spec, const sync::MeetingSettings& settings);
std::unique_ptr<Rounds> make_served_replay(const RoundsSpec& spec, const ServerSettings& settings);
/// Throws ConfigError if batches depend on the previous step: a batch goes to any free worker.
std::unique_ptr<Rounds> make_served_by_ranks(const RoundsSpec& spec,
                                             const ServerSettings& settings);

}  // namespace tutti::train
