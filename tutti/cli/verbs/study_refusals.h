#pragma once
// What a study refuses before its first run, and not hours later at a run's turn. ConfigError.

#include "tutti/cli/config/config.h"
#include "tutti/study/study.h"

namespace tutti {

/// Keys that would make the runs of a study share what must be each one's own.
void refuse_shared(const ResolvedConfig& resolved);

/// Ranks that share a replica: a study counts replicas by ranks.
void refuse_groups(const RunConfig& config);

/// What servers would refuse of any size of the study.
void check_served_sizes(const RunConfig& config, const study::StudyFlags& flags);

}  // namespace tutti
