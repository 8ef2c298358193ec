#include "tutti/train/settings/replay_check.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::train {

void check_replay(const config::RunConfig& config) {
  if (config.replay.machine.empty()) return;
  if (!config.run.slow.empty() || config.run.slow_sigma > 0)
    throw ConfigError(
        "run.slow and run.slow_sigma make ranks slow that are really there; a replay's time is its "
        "machine's: name what is slow in the machine's [[slow]] or [stragglers]");
  if (config.comm.compression != "none")
    throw ConfigError(fmt::format(
        "a replay goes without comm.compression = \"{}\": the virtual clock knows whole gradients "
        "alone",
        config.comm.compression));
}

}  // namespace tutti::train
