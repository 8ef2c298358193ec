#pragma once
// A study's checks before its first run, instead of hours later when a run begins. All throw
// ConfigError.

#include "tutti/cli/config/config.h"
#include "tutti/study/study.h"

namespace tutti::cli {

/// Refuses keys that would make the runs of a study share what each must have alone.
void refuse_shared(const ResolvedConfig& resolved);

/// Refuses ranks that share a replica: a study counts replicas by ranks.
void refuse_groups(const config::RunConfig& config);

/// Refuses what a device would refuse at any size of the study.
void check_device_sizes(const config::RunConfig& config, const study::StudyFlags& flags);

/// Refuses what servers would refuse at any size of the study.
void check_served_sizes(const config::RunConfig& config, const study::StudyFlags& flags);

}  // namespace tutti::cli
