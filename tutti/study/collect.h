#pragma once
// Finds a study's run records.

#include <string>
#include <vector>

#include "tutti/study/launch.h"
#include "tutti/study/metrics.h"

namespace tutti::study {

/// Reads a record as the study uses it: a replay's record as if its machine had written it, with a
/// rank per replica and virtual times. Throws as read_run does.
trace::RunLog read_measured(const std::string& path);

/// Returns one entry per launched run, with the reason if it does not count.
std::vector<RunSummary> collect(const std::vector<LaunchResult>& launched);

/// Collects the records of the study in `directory`. If there is no study, collects every
/// record.jsonl below it, wherever the runs were made (for example one batch job per rank count),
/// except in directories of set-aside attempts. A record that cannot be read or did not finish is
/// listed as a failure. Throws IoError if there is none, and ConfigError if `directory` itself
/// belongs to a single run.
std::vector<RunSummary> collect_directory(const std::string& directory);

}  // namespace tutti::study
