#pragma once
// Finds a study's run records.

#include <string>
#include <vector>

#include "tutti/study/launch.h"
#include "tutti/study/metrics.h"

namespace tutti::study {

/// A record as the study takes it: that of a replay as if its machine had written it, with a
/// replica a rank and virtual times. Throws as read_run does.
RunLog read_measured(const std::string& path);

/// One entry per launched run, with the reason when it does not count.
std::vector<RunSummary> collect(const std::vector<LaunchResult>& launched);

/// The records of the study in `directory`; where none lies, every record.jsonl below it, wherever
/// the runs were made (for example one batch job per rank count); directories of set-aside attempts
/// are passed over. A record that cannot be read or
/// did not finish is listed as a failure. Throws IoError when there is none, and ConfigError when
/// `directory` itself is that of a single run.
std::vector<RunSummary> collect_directory(const std::string& directory);

}  // namespace tutti::study
