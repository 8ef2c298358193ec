#pragma once
// Finds keys that have no effect because of other keys' values: momentum with adamw, gamma with a
// constant rate. The table defines these (ConfigKey::only_with).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/models/block/model.h"

namespace tutti::train {

struct IdleKey {
  const config::ConfigKey* key;  ///< points into config_keys()
  std::string text;              ///< "optimizer.momentum = 0.8 has no effect: it is for ..."
};

/// Returns all keys that have no effect, whatever their values. `tasks` are those of the network's
/// predictions; none: they are unknown, and keys that depend on them are left out.
std::vector<IdleKey> idle_keys(const config::RunConfig& config,
                               const std::optional<std::set<models::TaskKind>>& tasks);

/// Warns of non-default values without effect where this depends on the data set's tasks; the
/// reader of the configuration has warned of the others.
void warn_of_idle_keys(const config::RunConfig& config, const models::ModelSpec& model);

}  // namespace tutti::train
