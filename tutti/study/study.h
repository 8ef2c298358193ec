#pragma once
// The verb `tutti study`.

#include <span>

#include "tutti/study/sweep.h"

namespace tutti::study {

/// Plans, launches, collects and evaluates; prints the tables, where everything lies and what to do
/// next on standard output, and writes study.csv, runs.csv, study.json and report.html into
/// output_dir. Returns the exit code of the program: 0 if every run is usable, whether or not it
/// reached the target (a missed target is an answer); 1 if a run failed (starting the study again
/// runs only that one); 3 with require_target if a run missed it; 75 if the study was asked to stop
/// (start it again to go on). Throws ConfigError and IoError.
int run_study(const StudyFlags& flags);

/// Throws the ConfigError that run_study() would throw about a finished run in its folder with
/// another configuration.
void check_finished(const StudyFlags& flags);

/// Sets each study's `runs_after`, for studies that are made in this order.
void count_runs_after(std::span<StudyFlags> studies);

}  // namespace tutti::study
