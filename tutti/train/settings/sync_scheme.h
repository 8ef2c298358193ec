#pragma once
// Parses and checks [sync] of a configuration.

#include <optional>
#include <string>

#include "tutti/config/config.h"
#include "tutti/sync/meeting.h"

namespace tutti::train {

/// The parts of a scheme such as "local:8"; for servers, see train/settings/server_settings.h.
struct SyncScheme {
  enum class Name { step, local, easgd, dpsgd, gossip, servers };
  Name name = Name::step;
  int64_t every = 1;       ///< steps; 0: never
  bool epochs = false;     ///< every epoch instead
  double probability = 0;  ///< gossip: probability of sending after a step, above 0
};
/// Throws ConfigError for an invalid scheme, or one that is not built yet.
SyncScheme parse_sync(const std::string& text);

/// Throws ConfigError for a key of [sync] that the scheme does not have, and for settings that
/// require scheme "step".
void check_sync(const config::RunConfig& config);

/// Returns how the replicas meet between steps; nothing if they meet within each step, or if
/// servers hold the weights. local:1 also counts as meeting within each step where it is
/// equivalent: for plain gradient descent the average of steps is the step of the average.
std::optional<sync::MeetingSettings> meeting_settings(const config::RunConfig& config,
                                                      int64_t steps_per_epoch);

}  // namespace tutti::train
