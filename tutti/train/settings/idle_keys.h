#pragma once
// Keys that have no effect because of what others say: momentum beside adamw, gamma beside a
// constant rate. The table says which (ConfigKey::only_with).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/models/block/model.h"

namespace tutti {

struct IdleKey {
  const ConfigKey* key;  ///< of config_keys()
  std::string text;      ///< "optimizer.momentum = 0.8 has no effect: it is for ..."
};

/// All keys that have no effect, whatever their values are. `tasks`: what the network's predictions
/// learn; none: not known yet, and what depends on it is left out.
std::vector<IdleKey> idle_keys(const RunConfig& config,
                               const std::optional<std::set<TaskKind>>& tasks);

/// Warns of values other than the default that have no effect, where only the data set has told the
/// tasks; of the others the reader of the configuration has warned.
void warn_of_idle_keys(const RunConfig& config, const ModelSpec& model);

}  // namespace tutti
