#pragma once
// What [sync] of a configuration means.

#include <optional>
#include <string>

#include "tutti/config/config.h"
#include "tutti/sync/meeting.h"

namespace tutti {

/// "local:8" in parts; servers: train/settings/server_settings.h has the rest.
struct SyncScheme {
  enum class Name { step, local, easgd, dpsgd, gossip, servers };
  Name name = Name::step;
  int64_t every = 1;       ///< steps; 0: never
  bool epochs = false;     ///< every epoch instead
  double probability = 0;  ///< gossip: of sending after a step, above 0
};
/// ConfigError for what is none, or is not built yet.
SyncScheme parse_sync(const std::string& text);

/// ConfigError for a key of [sync] that the scheme does not have, and for what goes with scheme
/// "step" alone.
void check_sync(const RunConfig& config);

/// How the replicas meet between steps; nothing where they do within each, and where servers hold
/// the weights. Within each also where local:1 comes to the same: of plain gradient descent the
/// average of steps is the step of the average.
std::optional<MeetingSettings> meeting_settings(const RunConfig& config, int64_t steps_per_epoch);

}  // namespace tutti
