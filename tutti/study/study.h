#pragma once
// The verb `tutti study`.

#include <span>

#include "tutti/study/sweep.h"

namespace tutti::study {

/// Plans, launches, collects, evaluates; prints the tables, where everything lies and what to do
/// next on standard output, and writes study.csv, runs.csv, study.json and report.html into
/// output_dir. The exit code of the program: 0 when every run is usable, whether or not it reached
/// the target (a missed target is an answer); 1 when a run failed (starting the study again runs
/// only that one); 3 with require_target when a run missed it; 75 when the study was asked to stop
/// (start it again to go on). Throws ConfigError and IoError.
int run_study(const StudyFlags& flags);

/// What run_study() would refuse of the finished runs in its folder: ConfigError where one had
/// another configuration.
void check_finished(const StudyFlags& flags);

/// Of studies that are made in this order: each's `runs_after`.
void count_runs_after(std::span<StudyFlags> studies);

}  // namespace tutti::study
